"""Other packages at the same work: each as its own documentation shows, and in its best honest form.

No peer knows protection, so each plays the plain linear bandit of the target: fewer vectors than ours.
Most keep a model per arm and are shown one context a round. "shared" is the form in which one
parameter vector serves all arms, as in our problem; where a package has no such form, it is the trick
that a user who knows the package would find. What is prepared outside the rounds is not timed.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray

Play = Callable[[int], None]  # one round: choose, observe, learn


class Board(NamedTuple):
    """The plain linear bandit that every peer plays: given arms, given noise."""

    menus: (
        FloatArray  # (n, K, d): arm sets, gone through again and again; n = 1 where arms are fixed
    )
    theta: FloatArray  # (d,)
    noise: FloatArray  # (T,)

    def arms(self, t: int) -> FloatArray:
        """The arms of a round; (K, d)."""
        return self.menus[t % len(self.menus)]

    def reward(self, t: int, arm: int) -> float:
        """What playing that arm gives."""
        return float(self.arms(t)[arm] @ self.theta + self.noise[t % len(self.noise)])


class Peer(NamedTuple):
    """A package in one form."""

    package: str
    form: str
    prepare: Callable[[Board], Play]

    @property
    def name(self) -> str:
        """Package and form."""
        return f"{self.package}, {self.form}"


def installed(package: str) -> str | None:
    """Its version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def bayesian_bandits(board: Board) -> Play:
    """A LipschitzContextualAgent: one learner for all arms, arm features by a featurizer."""
    package = import_module("bayesianbandits")
    n_arms = board.menus.shape[1]
    shown = [board.arms(0)]  # the arms of the round; a token is a row of them

    def features(contexts: Any, tokens: list[int]) -> Any:
        arms = shown[0] if len(tokens) == n_arms else shown[0][tokens]
        return arms.T[None]  # (contexts, features, arms), as the package expects

    agent = package.LipschitzContextualAgent(
        arms=[package.Arm(k) for k in range(n_arms)],
        policy=package.ThompsonSampling(),
        arm_featurizer=package.FunctionArmFeaturizer(features),
        learner=package.NormalRegressor(alpha=0.1, beta=100.0),
        random_seed=0,
    )
    nothing = np.zeros((1, 1))

    def play(t: int) -> None:
        shown[0] = board.arms(t)
        (arm,) = agent.pull(nothing)
        agent.select_for_update(arm).update(nothing, np.array([board.reward(t, arm)]))

    return play


def mabwiser_per_arm(board: Board) -> Play:
    """LinUCB as it is: a model per arm, one context a round."""
    mab = import_module("mabwiser.mab")
    n_arms, d = board.menus.shape[1:]
    model = mab.MAB(list(range(n_arms)), mab.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    model.fit([0], [0.0], np.zeros((1, d)))

    def play(t: int) -> None:
        context = board.arms(t)[:1]
        arm = model.predict(context)
        model.partial_fit([arm], [board.reward(t, arm)], context)

    return play


def mabwiser_shared(board: Board) -> Play:
    """One arm called "model"; our arms are its contexts, and the largest expectation is played."""
    mab = import_module("mabwiser.mab")
    model = mab.MAB([0], mab.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    model.fit([0], [0.0], np.zeros((1, board.menus.shape[2])))

    def play(t: int) -> None:
        arms = board.arms(t)
        values = [value[0] for value in model.predict_expectations(arms)]
        arm = int(np.argmax(values))
        model.partial_fit([0], [board.reward(t, arm)], arms[arm : arm + 1])

    return play


def contextual_bandits_per_arm(board: Board) -> Play:
    """LinUCB as it is: a model per arm, one context a round."""
    online = import_module("contextualbandits.online")
    model = online.LinUCB(nchoices=board.menus.shape[1], random_state=1)

    def play(t: int) -> None:
        context = board.arms(t)[:1]
        (arm,) = model.predict(context)
        model.partial_fit(context, np.array([arm]), np.array([board.reward(t, arm)]))

    return play


def contextual_bandits_shared(board: Board) -> Play:
    """Two choices (the least there can be), the first of which is the model; arms are contexts."""
    online = import_module("contextualbandits.online")
    model = online.LinUCB(nchoices=2, fit_intercept=False, random_state=1)
    first = np.zeros(1, np.int64)

    def play(t: int) -> None:
        arms = board.arms(t)
        arm = int(np.argmax(model.decision_function(arms)[:, 0])) if t else 0
        model.partial_fit(arms[arm : arm + 1], first, np.array([board.reward(t, arm)]))

    return play


def as_dicts(arms: FloatArray) -> list[dict[int, float]]:
    """Arms as river reads them."""
    return [dict(enumerate(arm)) for arm in arms.tolist()]


def river_per_arm(board: Board) -> Play:
    """LinUCBDisjoint as it is: a model per arm, one context a round."""
    policy = import_module("river.bandit").LinUCBDisjoint(seed=0)
    numbers = list(range(board.menus.shape[1]))
    contexts = [as_dicts(arms[:1])[0] for arms in board.menus]

    def play(t: int) -> None:
        context = contexts[t % len(contexts)]
        arm = policy.pull(numbers, context=context)
        policy.update(arm, context, board.reward(t, arm))

    return play


def river_shared(board: Board) -> Play:
    """One BayesianLinearRegression; a loop over the arms takes the largest mean plus deviation."""
    model = import_module("river.linear_model").BayesianLinearRegression()
    menus = [as_dicts(arms) for arms in board.menus]

    def play(t: int) -> None:
        arms = menus[t % len(menus)]
        laws = [model.predict_one(arm, with_dist=True) for arm in arms]
        arm = max(range(len(arms)), key=lambda k: laws[k].mu + laws[k].sigma)
        model.learn_one(arms[arm], board.reward(t, arm))

    return play


def coba_shared(board: Board) -> Play:
    """LinUCBLearner on action features: one parameter vector, as it is."""
    learner = import_module("coba").LinUCBLearner(features=["a"])
    menus = [[tuple(arm) for arm in arms.tolist()] for arms in board.menus]
    rows = [{arm: k for k, arm in enumerate(arms)} for arms in menus]

    def play(t: int) -> None:
        at = t % len(menus)
        action, odds = learner.predict(None, menus[at])[:2]
        learner.learn(None, action, board.reward(t, rows[at][action]), odds)

    return play


def vowpal_text(board: Board) -> Play:
    """RegCB (regcbopt) over action features, as its tutorial writes it: text, parsed every round."""
    workspace = vowpal()
    menus = [vowpal_lines(arms) for arms in board.menus]

    def play(t: int) -> None:
        lines = menus[t % len(menus)]
        odds = workspace.predict(lines)
        arm = odds.index(max(odds))
        label = f"{arm}:{-board.reward(t, arm)}:{odds[arm]} "
        workspace.learn([*lines[:arm], label + lines[arm], *lines[arm + 1 :]])

    return play


def vowpal_parsed(board: Board) -> Play:
    """The same with examples that were parsed before the clock started; it learns from one arm."""
    workspace = vowpal()
    lines = [vowpal_lines(arms) for arms in board.menus]
    menus = [workspace.parse(menu) for menu in lines]

    def play(t: int) -> None:
        at = t % len(menus)
        odds = workspace.predict(menus[at])
        arm = odds.index(max(odds))
        workspace.learn([f"0:{-board.reward(t, arm)}:{odds[arm]} {lines[at][arm]}"])

    return play


def vowpal() -> Any:
    """A workspace of cb_explore_adf; it learns by gradient steps and keeps no covariance."""
    return import_module("vowpalwabbit").Workspace("--cb_explore_adf --regcbopt --quiet")


def vowpal_lines(arms: FloatArray) -> list[str]:
    """Arms as lines of text."""
    return ["|a " + " ".join(f"{j}:{x:.9g}" for j, x in enumerate(arm)) for arm in arms.tolist()]


PEERS = (
    Peer("bayesianbandits", "shared, Thompson", bayesian_bandits),
    Peer("mabwiser", "a model per arm", mabwiser_per_arm),
    Peer("mabwiser", "shared", mabwiser_shared),
    Peer("contextualbandits", "a model per arm", contextual_bandits_per_arm),
    Peer("contextualbandits", "shared", contextual_bandits_shared),
    Peer("river", "a model per arm", river_per_arm),
    Peer("river", "shared", river_shared),
    Peer("coba", "shared", coba_shared),
    Peer("vowpalwabbit", "shared, text", vowpal_text),
    Peer("vowpalwabbit", "shared, parsed before", vowpal_parsed),
)


def ready(board: Board) -> Iterator[tuple[Peer, Play | str]]:
    """Every peer set up on that board, or the reason why it is not there."""
    for peer in PEERS:
        if installed(peer.package) is None:
            yield peer, "not installed: pip install -r benchmarks/peers.txt"
            continue
        try:
            play = peer.prepare(board)
            for t in range(3):  # what a package does on first use is not a round
                play(t)
            yield peer, play
        except Exception as error:  # whatever a foreign package raises is its reason
            yield peer, f"{type(error).__name__}: {error}"
