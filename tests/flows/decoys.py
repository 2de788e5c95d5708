"""A working folder full of things that look like ours or Prefect's, and must not matter."""

from __future__ import annotations

from pathlib import Path

_ELSEWHERE = "http://127.0.0.1:9/api"
_PACKAGES = ("pldp", "flows", "tasks", "sql", "expectations")
_MODULES = ("pldp", "prefect", "uvicorn", "distributed", "duckdb", "multiprocessing", "sitecustomize", "usercustomize")


def decoys(folder: Path) -> Path:
    """The folder, made."""
    folder.mkdir()
    for name in _PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('a decoy was imported')\n")
    for name in _MODULES:
        (folder / f"{name}.py").write_text("raise RuntimeError('a decoy was imported')\n")
    (folder / ".env").write_text(f"PREFECT_API_URL={_ELSEWHERE}\nPREFECT_PROFILES_PATH={folder / 'profiles.toml'}\n")
    (folder / "profiles.toml").write_text(f'active = "a"\n[profiles.a]\nPREFECT_API_URL = "{_ELSEWHERE}"\n')
    (folder / "prefect.toml").write_text(
        f'[api]\nurl = "{_ELSEWHERE}"\nauth_string = "a:b"\n[server.ephemeral]\nenabled = true\n'
        "[results]\npersist_by_default = true\n"
    )
    (folder / "pyproject.toml").write_text("this is [not TOML\n")
    (folder / "prefect.yaml").write_text("pull: [{prefect.deployments.steps.run_shell_script: {script: 'false'}}]\n")
    (folder / ".prefectignore").write_text("*\n")
    return folder
