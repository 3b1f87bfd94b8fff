package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/printout"
)

func newMigrateCopy(std streams) *cobra.Command {
	var req services.CopyRequest
	var output string
	cmd := &cobra.Command{
		Use:   "copy --from DATABASE --to DATABASE",
		Short: "Copy everything from SQLite to PostgreSQL, or back",
		Long: `Copy a whole database from SQLite to PostgreSQL, or from PostgreSQL to SQLite. Every row keeps its id, tokens and
links stay valid, and background jobs stay queued. Give both as sqlite:PATH (the file or the data directory) or
postgres://user@host:5432/name. Put the password into PGPASSWORD or ~/.pgpass, because other users of the machine
can read the command line.

Stop the server first: the source must not change, and a source that is in use is refused. The target is a new
database, or a data directory without one; the command creates the schema. Running the same command again resumes an
interrupted copy, after checking that the source has not changed. Finally the target is read back: the number of
rows and the SHA-256 of each table must equal the source's.

For PostgreSQL, give the address of the database, not of a pooler (PgBouncer): behind a pooler, the sessions of
servers that use the database may have another name and go unnoticed.

The key file stays the same: without it, stored credentials and the audit trail are useless. The default is the key
file next to the SQLite file (else in --data); --key-file sets another.

Exit status: 0 the copy is complete; 1 a table differs; 2 the copy failed.`,
		Example: `  palisade migrate copy --from sqlite:/var/lib/palisade --to postgres://palisade@db/palisade
  palisade migrate copy --from postgres://palisade@db/palisade --to sqlite:./data --key-file /etc/palisade.key`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			progress := &copyProgress{std: std}
			report, err := services.CopyDatabase(cmd.Context(), cfg, req, progress.show)
			progress.bar.finish()
			var wrong *services.EndpointError
			switch {
			case errors.As(err, &wrong):
				return usageError{err}
			case err != nil:
				return err
			}
			return printCopy(std, report, output)
		},
	}
	config.AddFlags(cmd.Flags(), "data", "key-file")
	cmd.Flags().StringVar(&req.From, "from", "", "the `DATABASE` to copy: sqlite:PATH or postgres://…")
	cmd.Flags().StringVar(&req.To, "to", "", "the `DATABASE` to create: postgres://… or sqlite:PATH")
	cmd.Flags().BoolVar(&req.ReplaceText, "replace-text", false, "replace text that PostgreSQL cannot store (NUL bytes, invalid UTF-8) with U+FFFD instead of failing")
	cmd.Flags().BoolVar(&req.RequeueJobs, "requeue-jobs", false, "requeue background jobs that a killed server left running, instead of refusing the copy")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("from")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// copyProgress shows a progress bar per phase.
type copyProgress struct {
	std   streams
	phase string
	bar   bar
	done  int64
}

func (p *copyProgress) show(phase string, done, total int64) {
	if phase != p.phase {
		p.bar.finish()
		what := map[string]string{"copy": "Copying rows", "verify": "Verifying rows", "backup": "Copying pages"}[phase]
		p.bar, p.phase, p.done = newBar(p.std, int(total), what), phase, 0
	}
	p.bar.add(int(done - p.done))
	p.done = done
}

// copiedJSON is the report for programs.
type copiedJSON struct {
	From        string            `json:"from"`
	To          string            `json:"to"`
	ResumedFrom *time.Time        `json:"resumedFrom,omitempty"`
	Replaced    int64             `json:"replacedTexts"`
	Requeued    int64             `json:"requeuedJobs"`
	OK          bool              `json:"ok"`
	Tables      []copiedTableJSON `json:"tables"`
}

type copiedTableJSON struct {
	Table          string `json:"table"`
	Rows           int64  `json:"rows"`
	Bytes          int64  `json:"bytes"`
	Checksum       string `json:"checksum"`
	TargetRows     int64  `json:"targetRows"`
	TargetChecksum string `json:"targetChecksum"`
	OK             bool   `json:"ok"`
}

func printCopy(std streams, r services.CopyReport, output string) error {
	var err error
	if output == "json" {
		err = printCopyJSON(std.out, r)
	} else {
		err = printCopyTable(std.out, r)
	}
	switch {
	case err != nil:
		return err
	case !r.OK:
		_, _ = fmt.Fprintf(std.err, "palisade: the target differs from the source: do not start a server on it. Empty it and copy again;\n"+
			"  if it happens again, check the logs of the database for damage\n")
		return errNo
	}
	_, _ = fmt.Fprintf(std.err, "The copy is complete and verified. Start the server on it with the same key file (%s), and never again on the old database.\n", printable(r.KeyFile))
	return nil
}

func printCopyTable(w io.Writer, r services.CopyReport) error {
	if !r.ResumedFrom.IsZero() {
		_, _ = fmt.Fprintf(w, "Resumed the copy of %s.\n", instant(r.ResumedFrom))
	}
	table := printout.NewTable(w)
	_, _ = fmt.Fprintln(table, "TABLE\tROWS\tBYTES\tCHECKSUM\tOK")
	var rows, bytes int64
	for _, t := range r.Tables {
		rows, bytes = rows+t.Rows, bytes+t.Bytes
		verdict := "ok"
		if !t.OK {
			verdict = fmt.Sprintf("FAILED: the target has %d rows, %.12s…", t.TargetRows, t.TargetChecksum)
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%.12s…\t%s\n", t.Name, t.Rows, t.Bytes, t.Checksum, verdict)
	}
	_, _ = fmt.Fprintf(table, "%d tables\t%d\t%d\n", len(r.Tables), rows, bytes)
	err := table.Flush()
	if r.Replaced > 0 {
		_, _ = fmt.Fprintf(w, "%d texts contained characters that PostgreSQL cannot store; they were replaced by U+FFFD.\n", r.Replaced)
	}
	if r.Requeued > 0 {
		_, _ = fmt.Fprintf(w, "%d interrupted jobs will run again.\n", r.Requeued)
	}
	return err
}

func printCopyJSON(w io.Writer, r services.CopyReport) error {
	out := copiedJSON{From: r.From, To: r.To, Replaced: r.Replaced, Requeued: r.Requeued, OK: r.OK}
	if !r.ResumedFrom.IsZero() {
		out.ResumedFrom = &r.ResumedFrom
	}
	for _, t := range r.Tables {
		out.Tables = append(out.Tables, copiedTableJSON{t.Name, t.Rows, t.Bytes, t.Checksum, t.TargetRows, t.TargetChecksum, t.OK})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
