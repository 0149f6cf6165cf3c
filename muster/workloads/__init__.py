"""Pure: wire objects of any dialect become one GangSpec, one file per dialect."""
