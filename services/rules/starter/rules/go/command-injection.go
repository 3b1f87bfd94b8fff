//go:build ignore

package samples

import (
	"context"
	"os/exec"
)

func list(ctx context.Context, name string) {
	// ruleid: palisade.go.command-injection
	exec.CommandContext(ctx, "sh", "-c", "ls "+name)
	// ruleid: palisade.go.command-injection
	exec.Command("/bin/bash", "-c", name)
	// ok: palisade.go.command-injection
	exec.CommandContext(ctx, "sh", "-c", "ls | wc -l")
	// ok: palisade.go.command-injection
	exec.Command("ls", "-c", name)
	// ok: palisade.go.command-injection
	exec.Command("git", "log", name)
}
