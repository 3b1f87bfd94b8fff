package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/timestamppb"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/findings/printout"
)

// auditFilter has the filter flags of audit entries.
type auditFilter struct {
	since, until, actor, method, object, request, code string
}

func (f *auditFilter) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.since, "since", "", "only entries at or after this time: 7d, 12h, 2026-05-04, 2026-05-04T10:20:30Z")
	flags.StringVar(&f.until, "until", "", "only entries before this time")
	flags.StringVar(&f.actor, "actor", "", "actor: a name (ada@acme.test), a kind (user, token, job, host), or both (token:7)")
	flags.StringVar(&f.method, "method", "", "RPC or job: UpdateProject")
	flags.StringVar(&f.object, "object", "", "changed object: a kind (project) or a kind and an id (project:7)")
	flags.StringVar(&f.request, "request", "", "id of the request, as in the header X-Request-Id")
	flags.StringVar(&f.code, "code", "", "result: OK, PermissionDenied, NotFound, …")
}

func (f *auditFilter) parse(now time.Time) (*platformv1.ListAuditEntriesRequest, error) {
	kind, id, _ := strings.Cut(f.object, ":")
	out := &platformv1.ListAuditEntriesRequest{
		Actor: f.actor, Method: f.method, ObjectKind: kind, ObjectId: id, RequestId: f.request, Code: f.code,
	}
	if kind == "" && id != "" {
		return nil, usagef("--object: got %q, want a kind before the colon, such as project:7", printable(f.object))
	}
	var err error
	if out.Since, err = auditTime("since", f.since, now); err != nil {
		return nil, err
	}
	out.Until, err = auditTime("until", f.until, now)
	return out, err
}

// auditTime parses a time flag; nil for a flag that was not given.
func auditTime(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	seconds, err := parseMoment(text, now)
	if err == nil {
		var number float64
		if number, err = strconv.ParseFloat(seconds, 64); err == nil && math.Abs(number) < 1e11 {
			return timestamppb.New(time.UnixMicro(int64(math.Round(number * 1e6)))), nil
		}
	}
	return nil, usagef("--%s: got %q, want a time ago (7d, 12h), a date (2026-05-04) or a time (2026-05-04T10:20:30Z)", flag, printable(text))
}

func newAuditList(std streams) *cobra.Command {
	var filter auditFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List entries of the audit trail as a table, newest first",
		Long: `List entries of the audit trail of a deployment, newest first. An entry must match all filters. The export has the
details of each change.`,
		Example: `  palisade audit list
  palisade audit list --since 7d --code PermissionDenied   # who was refused
  palisade audit list --object project:7                   # the history of one project
  palisade audit list --actor ada@acme.test --limit 500`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit: got %d, want at least 1", limit)
			}
			request, err := filter.parse(std.now())
			if err != nil {
				return err
			}
			table := printout.NewTable(std.out)
			_, _ = fmt.Fprintln(table, "TIME\tACTOR\tMETHOD\tOBJECT\tCODE")
			rows, more := 0, false
			withheld, err := services.ReadAudit(cmd.Context(), cfg, cfg.Deployment, request, false, func(e *platformv1.AuditEntry) error {
				if rows == limit {
					more = true
					return fs.SkipAll
				}
				rows++
				_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", instant(e.GetAt().AsTime()), printable(auditActor(e.GetActor())),
					printable(e.GetMethod()[strings.LastIndex(e.GetMethod(), "/")+1:]), printable(auditObjects(e.GetChanges())), printable(e.GetCode()))
				return err
			})
			if err != nil {
				return err
			}
			if err := table.Flush(); err != nil {
				return err
			}
			warnWithheld(std, withheld)
			if !more {
				return nil
			}
			_, _ = fmt.Fprintf(std.err, "There are more than %d entries; use --limit to show more.\n", limit)
			if cmd.Flags().Changed("limit") {
				return errMore
			}
			return nil
		},
	}
	addStoreFlags(cmd)
	filter.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 50, "maximum number of entries; exit status 4 if you give it and there are more")
	return cmd
}

// warnWithheld prints how many entries are not shown.
func warnWithheld(std streams, n int) {
	if n > 0 {
		_, _ = fmt.Fprintf(std.err, "palisade: %s left out: edited, moved or added outside of Palisade. Run: palisade audit verify\n",
			plural(int64(n), "entry is", "entries are"))
	}
}

// auditActor returns the actor's name, kind and id.
func auditActor(a *platformv1.AuditActor) string {
	text := a.GetKind()
	if a.GetId() != 0 {
		text += ":" + strconv.FormatInt(a.GetId(), 10)
	}
	if a.GetName() != "" {
		text = a.GetName() + " (" + text + ")"
	}
	return text
}

func auditObjects(changes []*platformv1.AuditChange) string {
	if len(changes) == 0 {
		return "-"
	}
	text := changes[0].GetKind() + ":" + changes[0].GetId()
	if len(changes) > 1 {
		text += fmt.Sprintf(" and %d more", len(changes)-1)
	}
	return text
}

func newAuditExport(std streams) *cobra.Command {
	var filter auditFilter
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write entries of the audit trail as NDJSON, oldest first",
		Long: `Write entries of the audit trail of a deployment to standard output, one JSON object per line, oldest first. They have
the form of the API, with the objects before and after the change and with the hashes. Secrets were redacted before
they were stored. The output is streamed, so memory does not limit the number of entries.`,
		Example: `  palisade audit export > audit.ndjson
  palisade audit export --since 2026-05-01 --until 2026-06-01 | gzip > audit-2026-05.ndjson.gz
  palisade audit export --since 24h | jq -r 'select(.code != "OK") | .actor.name'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			request, err := filter.parse(std.now())
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(std.out, 64<<10)
			var line []byte
			withheld, err := services.ReadAudit(cmd.Context(), cfg, cfg.Deployment, request, true, func(e *platformv1.AuditEntry) error {
				line = append(e.AppendJSON(line[:0]), '\n')
				_, err := out.Write(line)
				return err
			})
			if err != nil {
				return err
			}
			defer warnWithheld(std, withheld)
			return out.Flush()
		},
	}
	addStoreFlags(cmd)
	filter.add(cmd.Flags())
	return cmd
}
