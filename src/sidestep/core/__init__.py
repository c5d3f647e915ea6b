"""The mathematics: arrays in, arrays out. No file here knows randomness, files or clocks.

What a policy knows, and may play:

    problem               the problem as a policy knows it: sizes, noise, bounds, tolerances
    actions               arms, ball, box, ellipsoid, simplex; the farthest action of a solid

What is learned:

    estimator             least squares for every vector, kept up to date
    confidence            confidence sets of the vectors
    posterior             Gaussian posterior of every vector, draws from it, the width of its prior
    rank                  rank of the protected vectors: estimated, assumed, possible

What an action is worth:

    objective             the two aims and their slopes
    projection            the paper's reward, and its gradient in every vector
    tolerance_program     the best action of a solid within tolerances
    caution               chance of being within all tolerances
    variance_reduction    what one more measurement would tell
    information_ratio     expected regret against information

How an action is chosen:

    best_action           the best action, among arms or in a solid
    optimism              the optimistic action, among arms or on the ball
    optimism_arms         optimistic values of arms
    optimism_ball         search for the optimistic action on the ball
    optimism_ball_bound   the certificate of that search
    arm_forms             linear and quadratic forms of all arms
    core_set              stopping rules of CORE-SET
    best_subset           the best-conditioned vectors, by branch and bound
    lock_in               the lock-in monitor

What can be proved:

    theory                bounds of docs/theory.md as numbers
    upper_bounds          bounds of ours
    lower_bounds          what every policy must pay
    last_direction        the ball where one direction is left
    conditions            when the bounds hold

Tools:

    arrays                types of arrays
    linalg                norms, projections, factors, the rule for ties
    validation            checks of arguments
    display               how objects are shown
    jit                   kernels, and the two bodies of a hot function
    numba_backend         how kernels are compiled
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["theory"])
