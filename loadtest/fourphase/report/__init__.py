"""What a load test prints and writes: figures, verdict, charts and pages.

``charts``     plots as inline SVG: lines over time, distributions, a map of racks
``curve``      Muster beside a bare kube-scheduler over sizes of the cluster
``curvepage``  how the report shows the turns beside a bare kube-scheduler: tables, notes, plots
``figures``    figures of a run from its columns
``outcome``    what came out of a run, as one JSON object
``page``       the report as one HTML page that needs nothing from outside
``setting``    the parts of the report about the machine, the load and the replay
``summary``    the report as Markdown
``topology``   where gangs went: how full each rack was at chosen moments, and how far gangs spread
``verdict``    the independent judgement at the end
``withdrawal`` the same load with and without Muster's evictions, phase by phase
"""
