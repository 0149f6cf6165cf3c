"""Who may call: certificates, tokens and the answers of the API server about them.

``accesscheck``  the gate in front of the routes: admits a caller or answers with an error
``callerrules``  the rules of the section ``callers``: who calls, and what they may do
``answercache``  a cache of the API server's answers about tokens
``readerscope``  what a reader sees who may not read everything
``signedcallers``  holders of the cluster's client certificates, by the signature of a request
"""
