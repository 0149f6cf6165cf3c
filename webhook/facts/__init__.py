"""What the webhook knows of its cluster: profiles, policies, owners and the extender's answers.

``extenderclient``   the webhook's one question to the extender
``livecluster``      what injection knows beside the pod, from the live cluster
``objectchanges``    one kind of object and what its changes mean
``owners``           the owners of a pod, by which override policies are chosen
``policies``         the override policies of the cluster, kept up to date by a watch
``profileevents``    events about profiles and override policies
``profiles``         profiles as objects of the cluster; of a broken one the last good state
``profilestatuses``  the condition ``Ready`` in the status of profiles
``queues``           the queues of the cluster, kept up to date by watches
``sources``          where the facts of injection come from: files, or the live cluster
``suspendingqueues`` which queues have whole jobs wait
``templateevents``   Events on objects whose templates were not completed
"""
