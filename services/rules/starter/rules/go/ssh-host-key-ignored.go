//go:build ignore

package samples

import "golang.org/x/crypto/ssh"

func dial(key ssh.PublicKey) {
	// ruleid: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	// ok: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(key)}
	// ok: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{User: "deploy"}
	// ok: palisade.go.ssh-host-key-ignored
	_ = ssh.ClientConfig{HostKeyCallback: hostKeys}
}
