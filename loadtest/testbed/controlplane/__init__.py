"""The real control plane on loopback: built once, started for each test.

``assets``           builds real control planes from their published Go modules
``controlplane``     a real control plane on loopback
``crds``             the CustomResourceDefinitions of the dialects, from published Go modules
``credentials``      certificates, tokens and kubeconfig files of one throw-away control plane
``kueueassets``      builds Kueue's performance runner and its manager from its Go module
``nodeassets``       builds what a real node runs, kubelet to container
``parts``            a control plane made of programs in one temporary directory
``process``          being a well-behaved child process, and having some
``procfs``           CPU time and resident memory of a process, from proc(5)
``programs``         start, watch and stop the programs of a control plane
``schedulerconfig``  KubeSchedulerConfigurations for tests and benches
``wallclock``        a program with a wall clock that others set
"""
