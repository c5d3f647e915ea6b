"""What a study believes: from settings and results to effects with their uncertainty. Plain numpy.

bases.py         functions of one factor: straight, bend, smooth; the joint smooth part as products
places.py        settings in their contexts, numbered
features.py      settings as rows of features; their prior variances by kind
prior.py         every number of the prior, with the sizes and shapes that are averaged
knowledge.py     what is known before the first result, as weights of features; parts of the prior
expectations.py  changes over the whole range of a factor as such knowledge
earlier.py       the population that earlier studies and the next one are drawn from
lesson_record.py  what they taught, as the record of the next study keeps it
prior_parts.py   the parts of a study's prior, and what became of them
observations.py  what was measured, and its sums per setting; no numpy
rows.py          these sums as arrays
readings.py      which results are grossly wrong, or below a limit of detection
posterior.py     one outcome: Gaussians given size, shape, noise and drift, and their likelihood
effects.py       effects of settings as mixtures: means, chances, quantiles, covariances
belief.py        all outcomes: the components that matter, averaged by what the results say
learner.py       takes results, and knows the belief after them
recommendation.py  the rule: within all limits with the stated certainty, or stay
next_question.py   which result to ask for next
aliasing.py      which changes of the factors nobody can see, in their units
bends.py         bends that the results show

In the units of a study:

evidence.py      results as sums; no numpy
formula_features.py  the features that a formula adds
study_learner.py  the belief of a study, and the settings that it may choose from
search.py        the settings of a box that are worth a thought
intervals.py     intervals and verdicts that cannot contradict the chance
assessment.py    today's recommendation, how sure it is, and what is open
decision.py      the next question, with the numbers of its card
response.py      an outcome along one factor, with its band
trajectory.py    how the estimates came about
outlook.py       what further results are expected to bring
"""
