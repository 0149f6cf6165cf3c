"""Queues of KAI, as YAML texts."""


def kai(name: str, quota: int, parent: str = "", **spec: object) -> str:
    """Return a Queue with a quota of so many GPUs and no limit."""
    more = "".join(f"  {field}: {value}\n" for field, value in spec.items())
    above = f"  parentQueue: {parent}\n" if parent else ""
    return f"""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: {name}}}
spec:
  resources:
    cpu: {{quota: -1, limit: -1}}
    memory: {{quota: -1, limit: -1}}
    gpu: {{quota: {quota}, limit: -1}}
{above}{more}"""
