"""Makes profiles for containerd and CRI-O of Docker's: python3 deploy/kubernetes/seccomp/make.py [FOLDER]

Docker's form (`config/docker/seccomp.json`, the one source) has conditions: rules for some architectures, kernels and
capabilities. Kubernetes hands a profile to the runtime as it is, in the form of the OCI's runtime specification, which knows no
conditions; containerd would take the rules and leave the conditions out, so that what takes a capability would be allowed to all.
Here they are decided: for a container without capabilities, on a kernel from 5.0 on. Writes `amd64.json` and `arm64.json` beside
this file, or into FOLDER.
"""
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "config/docker/seccomp.json"
ARCHITECTURES = {"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}
KERNEL = (5, 0)
#: All that a rule may say here; something else is a reason to look at this program again.
KNOWN = {"names", "action", "args", "errnoRet", "comment", "includes", "excludes"}
CONDITIONS = {"caps", "arches", "minKernel"}


def counts(rule: dict, machine: str) -> bool:
    """Whether a rule counts for a container without capabilities on such a machine."""
    includes, excludes = rule.get("includes", {}), rule.get("excludes", {})
    assert rule.keys() <= KNOWN and includes.keys() <= CONDITIONS and excludes.keys() <= CONDITIONS - {"minKernel"}, rule
    kernel = tuple(int(part) for part in includes.get("minKernel", "0.0").split("."))
    return (
        not includes.get("caps")
        and kernel <= KERNEL
        and machine in includes.get("arches", [machine])
        and machine not in excludes.get("arches", [])
    )


def profile(docker: dict, machine: str) -> dict:
    """Returns the same for one sort of machine, as the runtime specification has it."""
    (found,) = [it for it in docker["archMap"] if it["architecture"] == ARCHITECTURES[machine]]
    said = ("names", "action", "errnoRet", "args")
    return {
        "defaultAction": docker["defaultAction"],
        "defaultErrnoRet": docker["defaultErrnoRet"],
        "architectures": [found["architecture"], *found["subArchitectures"]],
        "syscalls": [{key: rule[key] for key in said if key in rule} for rule in docker["syscalls"] if counts(rule, machine)],
    }


def main() -> None:
    docker = json.loads(SOURCE.read_text())
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for machine in ARCHITECTURES:
        made = profile(docker, machine)
        rules = ",\n    ".join(json.dumps(rule) for rule in made.pop("syscalls"))
        head = json.dumps(made, indent=2).removesuffix("\n}")
        (folder / f"{machine}.json").write_text(f'{head},\n  "syscalls": [\n    {rules}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
