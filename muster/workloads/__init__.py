"""Pure: wire objects of any dialect become one GangSpec, one file per dialect.

``descriptions``     what an object states of the gang that it will make
``dialect``          what a dialect is: one way of writing "these pods belong together"
``gangbook``         gangs that the model keeps, from objects and pods
``gangobjects``      objects that describe gangs, turned into the events of the gangs they describe
``gangproblems``     what is wrong with the gang that a pod or an object describes
``groupconditions``  conditions of PodGroups, of which Muster keeps its own entries
``jobowners``        RayJobs and TrainJobs: they make the objects that describe gangs
``jobmembers``       members of gangs that come from batch Jobs: how many are still to run
``madegangs``        the gangs that the objects of a manifest will make, with all their pods
``managedpods``      whether Muster manages a pod: one function for the webhook and the extender
``registry``         which dialect speaks for a pod when several could
``status``           what controllers of other schedulers read in the status of gang objects
``suspendablekinds``  the kinds that can be suspended, and which of them make others
``suspendedjobs``    jobs that Muster suspends and resumes: what they will make, what is written
``wholenumbers``     whole numbers that users write
``claims/``            objects that ask for quota by themselves
``devices/``         what pods ask of devices, and what nodes offer, by resource name
``dialects/``        one file per dialect: a wire object in, a gang out
``keys/``            labels and annotations that users write, and owners of pods
``queues/``          queues as each dialect writes them
"""
