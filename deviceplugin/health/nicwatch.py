"""One NIC: its ports."""

from deviceplugin.health.causes import HealthCause, Reason
from deviceplugin.model.inventory import Nic
from deviceplugin.model.signals import NicReading


class NicWatch:
    """What is known of one NIC. A port that never was up counts as one without a cable."""

    def __init__(self, nic: Nic) -> None:
        self._ports = {port.number: port.active for port in nic.ports}
        self._were_up = {number for number, active in self._ports.items() if active}
        self._lost: str | None = None

    def read(self, reading: NicReading) -> bool:
        """Take in which ports are up; return whether the NIC answered at all."""
        if not reading.ports:
            return False
        self._lost, self._ports = None, dict(reading.ports)
        self._were_up.update(number for number, active in reading.ports if active)
        return True

    def lost(self, why: str) -> None:
        """Take in that the NIC does not answer."""
        self._lost = why

    def causes(self) -> tuple[HealthCause, ...]:
        """Return what is wrong; without any port that is up the NIC cannot be used."""
        gone = () if self._lost is None else (HealthCause(Reason.LOST, self._lost),)
        down = [number for number, active in sorted(self._ports.items()) if not active]
        if not down:
            return gone
        if len(down) == len(self._ports):
            return (*gone, HealthCause(Reason.PORTS_DOWN, _listed(down)))
        fell = [number for number in down if number in self._were_up]
        return (*gone, HealthCause(Reason.PORT_DOWN, _listed(fell))) if fell else gone


def _listed(ports: list[int]) -> str:
    return "port " + ", ".join(map(str, ports))
