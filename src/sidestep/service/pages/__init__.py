"""The pages, for people. Every form works without script, and no page has inline scripts or styles.

shell.py     a page around its content: who is here, the forms' secret      forms.py     what a form sends
listing.py   the studies, and setting one up                                study.py     a study
answering.py ask, answer, correct, withdraw, close                          record.py    its record
candidates.py                                                               people.py    who may do what
link.py      one question, for one answer                                   login.py
views.py, best_view.py, lanes.py, svg.py    what a template shows: words from the cards, pictures as SVG
"""
