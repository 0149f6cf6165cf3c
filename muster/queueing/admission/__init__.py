"""Which of all gangs that wait for quota is admitted next.

``applicant``       a gang that waits for quota
``firmgangs``       gangs that never give way, within what their queue is entitled to
``memberrequests``  what the waiting members of a gang take
``quotacolumns``    the tree of queues as columns: what each may take now
``waitinglist``     those who wait as columns, in the order of their queues
``wantedamounts``   what the gangs of each queue ask for in all
``fairshares``      what queues get of what is divided among them
``counteduse``      what counts as used where shares are compared: past use, too, if it is to
``precedence``      which of two queues is served first
``userorder``       queues whose gangs go by what those used who name the queue
``turn``            who is next: a tournament up the tree
``waitingline``     the gangs of one planning cycle, with and without queues
``directory``       queues with nothing charged: what no waiting would change
``refusal``         why a queue does not admit a gang now, in words
"""
