"""The tables of the model: nodes, pods, gangs, holds, budgets and the topology tree."""
