import paramiko


def connect(client):
    # ruleid: palisade.python.ssh-host-key-ignored
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    # ruleid: palisade.python.ssh-host-key-ignored
    client.set_missing_host_key_policy(paramiko.WarningPolicy)
    # ok: palisade.python.ssh-host-key-ignored
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    # ok: palisade.python.ssh-host-key-ignored
    client.load_system_host_keys()
    # ok: palisade.python.ssh-host-key-ignored
    client.set_missing_host_key_policy(policy)
