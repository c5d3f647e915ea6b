"""The lab: simulate, record, report.

A run:

    simulate          one run and many
    compiled_run      the loop that is compiled
    random_streams    its random numbers
    when_to_compile   whether that pays
    record            the recorded rounds

An experiment:

    spec              an experiment as a TOML file
    sweep             all its runs
    executors         in this process, in several, or on a cluster
    results           its runs on disk
    results_folder    to which spec a folder belongs

What comes of it:

    analysis          from traces to numbers
    figures           from numbers to pictures
    report            one page
"""
