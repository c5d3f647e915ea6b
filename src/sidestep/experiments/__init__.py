"""The lab: simulate, record, report."""
