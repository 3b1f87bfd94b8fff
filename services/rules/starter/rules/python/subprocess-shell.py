import subprocess


def run(name):
    # ruleid: palisade.python.subprocess-shell
    subprocess.run("ls " + name, shell=True)
    # ruleid: palisade.python.subprocess-shell
    subprocess.check_output(f"ls {name}", shell=True)
    # ok: palisade.python.subprocess-shell
    subprocess.run("ls | wc -l", shell=True)
    # ok: palisade.python.subprocess-shell
    subprocess.run(["ls", name])
    # ok: palisade.python.subprocess-shell
    subprocess.run("ls " + name, shell=False)
