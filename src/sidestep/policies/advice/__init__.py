"""What a policy can say beside its next question: recommendations, reasons, what is still open.

Its files:

    recommend           the recommended action, with intervals and rivals
    explain             the reasons of a decision
    next_measurement    what would settle a recommendation
    rounds_left         how many rounds until stopping gives up little
    posterior_summary   effects, intervals, chances and values from the posterior
    rank_draws          draws of all vectors, with ranks as probable as they are
"""
