"""Explanations of what storage does and when: facts of a log in, findings with numbers out.

`*_facts` reads a log, open as a broker or `read_only` has it; `*_findings` is pure. Sentences are the commands' work.
"""
