"""What .ci/deploy looks at in the files for Kubernetes beyond their schemas: deploy.py FOLDER check | settings | users PORT.

FOLDER has what kubectl made of them. Needs PyYAML and websockets.
"""
import asyncio
import ipaddress
import itertools
import json
import sys
from pathlib import Path

import yaml
from websockets.asyncio.client import connect

PLACE = Path(sys.argv[1])
SECCOMP = Path("deploy/kubernetes/seccomp")
DOCKER = Path("config/docker/seccomp.json")

#: Where clouds hand out keys, or set machines up.
METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe", "64:ff9b::a9fe:a9fe",
]


def objects(name: str, kind: str) -> list[dict]:
    return [it for it in yaml.safe_load_all((PLACE / f"{name}.yaml").read_text()) if it["kind"] == kind]


def pods() -> None:
    for name in ("many-users", "pod-per-user"):
        (pod,) = [it["spec"]["template"]["spec"] for it in objects(name, "StatefulSet")]
        (settings,) = [it["data"] for it in objects(name, "ConfigMap")]
        grace = int(settings["OUTRIGGER_SHUTDOWN__GRACE"].removesuffix("s"))
        assert pod["terminationGracePeriodSeconds"] >= grace + 20, name
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], name
        assert pod["securityContext"]["runAsNonRoot"] and security["capabilities"] == {"drop": ["ALL"]}, name
        # What the model runs fills memory that is counted, or a volume with a size; nothing for which the machine evicts the pod.
        for volume in pod["volumes"]:
            assert "emptyDir" not in volume or (volume["emptyDir"]["medium"] == "Memory" and "sizeLimit" in volume["emptyDir"]), volume
        (policy,) = [it["spec"] for it in objects(name, "NetworkPolicy")]
        blocks = [to["ipBlock"] for rule in policy["egress"] for to in rule["to"] if "ipBlock" in to]
        for address in map(ipaddress.ip_address, METADATA):
            for block in blocks:
                if address in ipaddress.ip_network(block["cidr"]):
                    assert any(address in ipaddress.ip_network(it) for it in block["except"]), f"{name}: {address} is reached"


def said(rules: list[dict], call: str, arguments: dict[int, int]) -> tuple:
    """What becomes of a call: the first rule that fits it, as libseccomp has it for rules that do not overlap."""
    def fits(rule: dict) -> bool:
        tests = {
            "SCMP_CMP_EQ": lambda it, value: value == it["value"],
            "SCMP_CMP_NE": lambda it, value: value != it["value"],
            "SCMP_CMP_MASKED_EQ": lambda it, value: value & it["value"] == it.get("valueTwo", 0),
        }
        return call in rule["names"] and all(tests[it["op"]](it, arguments.get(it["index"], 0)) for it in rule.get("args") or [])

    found = {(rule["action"], rule.get("errnoRet")) for rule in rules if fits(rule)}
    assert len(found) <= 1, (call, found)
    return found.pop() if found else ("default",)


def profiles() -> None:
    """What was made says the same of each call as Docker's form says to a container without capabilities."""
    docker = json.loads(DOCKER.read_text())
    names = sorted({name for rule in docker["syscalls"] for name in rule["names"]} | {"kexec_load", "keyctl", "add_key"})
    values = {arg["value"] for rule in docker["syscalls"] for arg in rule.get("args") or []}
    values |= {0, 1, 0x10000000, 0x7E020000, 0xFFFFFFFF}
    for machine in ("amd64", "arm64"):
        made = json.loads((SECCOMP / f"{machine}.json").read_text())
        assert not {"archMap", "includes", "excludes"} & (made.keys() | {key for rule in made["syscalls"] for key in rule}), machine
        assert (made["defaultAction"], made["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1) == (docker["defaultAction"], docker["defaultErrnoRet"])
        # As Docker decides: moby's profiles/seccomp/seccomp_linux.go.
        rules = []
        for rule in docker["syscalls"]:
            includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
            if machine in excludes.get("arches", []) or includes.get("caps"):
                continue
            if includes.get("arches") and machine not in includes["arches"]:
                continue
            rules.append(rule)
        for name in names:
            for first, second in itertools.product(values, repeat=2):
                arguments = {0: first, 1: second}
                assert said(made["syscalls"], name, arguments) == said(rules, name, arguments), (machine, name, arguments)
        for refused in ("bpf", "reboot", "setns", "clone3", "perf_event_open", "init_module", "kexec_load", "keyctl"):
            assert said(made["syscalls"], refused, {})[0] != "SCMP_ACT_ALLOW", (machine, refused)
        assert said(made["syscalls"], "mount", {}) == ("SCMP_ACT_ALLOW", None)


def settings() -> None:
    """Prints the settings of many-users as variables, in this run's folders."""
    (data,) = [it["data"] for it in objects("many-users", "ConfigMap")]
    for name, value in data.items():
        print(f"{name}={value.replace('/run/outrigger', str(PLACE / 'secret')).replace('/work', str(PLACE / 'work'))}")


async def users(port: str) -> None:
    async def ready(name: str, folder: str | None) -> dict:
        token = (PLACE / name).read_text().strip()
        query = f"?project={PLACE / 'work' / folder}" if folder else ""
        async with connect(f"ws://127.0.0.1:{port}/ws{query}", additional_headers={"Authorization": f"Bearer {token}"}) as socket:
            return json.loads(await socket.recv())["payload"]

    for name, other in (("anna", "ben"), ("ben", "anna")):
        own = await ready(name, name)
        assert own["project"]["root"] == str(PLACE / "work" / name) and "operator" not in own, own
        for folder in (other, None):
            elsewhere = await ready(name, folder)
            assert "project" not in elsewhere and elsewhere["projectError"], elsewhere


match sys.argv[2:]:
    case ["check"]:
        pods()
        profiles()
    case ["settings"]:
        settings()
    case ["users", port]:
        asyncio.run(users(port))
    case other:
        sys.exit(f"deploy.py: {other}?")
