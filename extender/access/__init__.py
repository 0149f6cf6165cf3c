"""Who may call: certificates, tokens and the answers of the API server about them.

``accesscheck``  the gate in front of the routes: who is let in, and what every other caller gets
``callers``      the rules of the section ``callers``: who calls, and what they may do
``answercache``  answers of the API server about tokens, asked for once at a time and kept
"""
