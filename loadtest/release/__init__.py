"""What a release consists of, made here: an image without a registry, and what comes with it.

::

    apt ──► debian ──► base ──────┐
    pip ──► wheels ──► packages ──┼──► layers ──► image ──► assembly ─► dist/: wheel, sources,
    source tree ──► wheel ────────┘                           ▲         image, chart, plugin, sums
                                                              └── sbom, provenance, krew, chart

``debian``      which packages of Debian the base has, and where apt finds them
``base``        the lowest layer: those packages without scripts, shells and documentation
``wheels``      the locked wheels for the base's Python, from pip
``wheel``       Muster's own wheel
``packages``    wheels laid out as an environment of Python's, compiled by the base's Python
``layers``      a directory as a layer that has the same bytes each time
``dockerfile``  what the image starts, as whom: read from the Dockerfile
``image``       layers as an OCI image in one archive that `docker load` and `ctr` read
``build``       the image of this source tree, with its slow parts kept in the assets' cache
``chart``       the Helm chart as an archive
``krew``        `kubectl muster` as an archive that needs no Python, and its krew manifest
``sbom``        what is in the image, as CycloneDX
``provenance``  what a release was made from, as an in-toto statement
``assembly``    all files of a release, with their checksums
"""
