"""Metrics of the node's devices in DCGM's names, and the plugin's own, over HTTP.

``board``   the state of devices as Prometheus' text
``config``  where metrics and health are served: a section of the configuration
``fields``  which reading is which of DCGM's fields (dcgm_fields.h; names and units are facts)
``names``   the labels of a GPU's series, as dcgm-exporter writes them
``server``  HTTP: ``/metrics`` in Prometheus' text, ``/livez`` (and ``/healthz``), ``/readyz``
``text``    Prometheus' text format, version 0.0.4, the part that is needed here
"""
