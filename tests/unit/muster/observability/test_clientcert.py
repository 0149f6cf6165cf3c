"""Names and validity of a client certificate, as ``getpeercert()`` gives it."""

from muster.observability import clientcert

WHOLE = {
    "subject": (
        (("organizationName", "system:masters"),),
        (("organizationName", "team-a"), ("commonName", "first")),
        (("commonName", "kube-scheduler"),),
    ),
    "subjectAltName": (("DNS", "a.example"), ("IP Address", "198.18.0.1"), ("DNS", "b.example")),
    "notAfter": "Jan  1 00:00:00 2030 GMT",
}


def test_every_name_is_read_in_its_order() -> None:
    read = clientcert.read(WHOLE)
    assert read.common_names == ("first", "kube-scheduler")
    assert read.dns_names == ("a.example", "b.example")
    assert read.organizations == {"system:masters", "team-a"}
    assert read.names == {"first", "kube-scheduler", "a.example", "b.example"}


def test_the_end_of_the_validity_is_in_seconds_since_the_epoch() -> None:
    assert clientcert.read(WHOLE).until == 1893456000


def test_a_certificate_without_names_has_none() -> None:
    read = clientcert.read({"notAfter": WHOLE["notAfter"]})
    assert (read.common_names, read.dns_names) == ((), ())
    assert not read.organizations | read.names
