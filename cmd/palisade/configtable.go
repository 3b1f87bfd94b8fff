package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

const configIntro = `<!-- Made by ` + "`make generate`" + ` from services/config. Do not edit. -->
# Configuration

Every setting is a flag of ` + "`palisade serve`" + `, an environment variable, or a key of the YAML file that ` + "`--config`" + ` or
` + "`PALISADE_CONFIG`" + ` names. A flag wins over the variable, the variable over the file, the file over the default. An empty
variable counts as not set.

An unknown key or ` + "`PALISADE_…`" + ` variable is an error, so that a misspelt security setting cannot go unnoticed. (The
variables that Kubernetes sets for a service named ` + "`palisade`" + ` are ignored.) Secrets are never printed or logged.

Sizes are written as ` + "`16MiB`" + `, ` + "`64KiB`" + ` or in bytes; durations as ` + "`500ms`" + `, ` + "`60s`" + `, ` + "`15m`" + ` or ` + "`30d`" + `.

`

const configOutro = `
An example file:

` + "```yaml" + `
http: 0.0.0.0:8443
grpc: 0.0.0.0:9443
tls-cert: /etc/palisade/chain.pem
tls-key: /etc/palisade/key.pem
database: postgres://palisade@db.internal/palisade
log-format: json
max-upload: 2GiB
` + "```" + `

The log goes to standard error. While the server runs, lines are buffered for up to 100 ms. Warnings and errors flush
the buffer immediately, and after the first stop signal nothing is buffered. A process that is killed (` + "`kill -9`" + `) or
crashes loses the lines of the last 100 ms, but never Go's own crash output. The audit trail does not depend on the
log.

The client commands (` + "`palisade upload`, `palisade findings`" + `) read ` + "`PALISADE_URL`" + ` and ` + "`PALISADE_TOKEN`" + ` instead. The
standard ` + "`OTEL_…`" + ` variables configure traces.
`

// newConfigTable is hidden: `make generate` calls it.
func newConfigTable(std streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:    "config-table",
		Short:  "Print the documentation of all settings as Markdown",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			page := configPage()
			if output != "" {
				return os.WriteFile(output, page, 0o644)
			}
			_, err := std.out.Write(page)
			return err
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "file to write instead of standard output")
	return cmd
}

// configPage returns docs/configuration.md.
func configPage() []byte {
	var b bytes.Buffer
	b.WriteString(configIntro)
	b.WriteString("| Key and flag | Environment | Type | Default | Meaning |\n|---|---|---|---|---|\n")
	for _, f := range config.Fields() {
		value, doc := "", strings.ReplaceAll(f.Doc, "|", `\|`)
		if f.Default != "" {
			value = "`" + f.Default + "`"
		}
		if f.Secret {
			doc += " (secret)"
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", f.Name, f.Env, f.Type, value, doc)
	}
	b.WriteString(configOutro)
	return b.Bytes()
}
