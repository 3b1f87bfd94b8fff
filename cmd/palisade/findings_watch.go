package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

const (
	// watchSilence is how long a stream may send nothing. The server sends something every 15 seconds.
	watchSilence = 45 * time.Second
	// maxEvent is the largest event of the stream, in bytes.
	maxEvent = 16 << 20
)

type watchOptions struct {
	client                  clientFlags
	repos, refs, severities []string
	filters                 []string
	since, state            string
	json, fromOldest        bool
	// pause is the time before a new connection.
	pause time.Duration
}

func newFindingsWatch(std streams) *cobra.Command {
	o := watchOptions{pause: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print the changes of findings as they happen",
		Long: `Print the changes of findings as they happen: created, fixed, triaged and so on, one per line. The command
connects again when the connection or the server ends, and continues where it was. It ends when the token is
revoked, and when the server no longer has what is missing.

With --state, the position is written to a file after each message, and the next run continues there. A
change may then be printed twice, but none is left out: its id tells. This forwards the changes to another
system, such as a SIEM.`,
		Example: `  palisade findings watch
  palisade findings watch --severities high,critical --repos acme/web
  palisade findings watch --filter categories=security --filter refs=_default
  palisade findings watch --json --state /var/lib/palisade/siem.token | logger --tag palisade`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), std) },
	}
	o.client.add(cmd)
	cmd.Flags().StringArrayVar(&o.repos, "repos", nil, "only findings of these projects")
	cmd.Flags().StringArrayVar(&o.refs, "ref", nil, "only findings on these branches or full refs; _default for the primary branch")
	cmd.Flags().StringSliceVar(&o.severities, "severities", nil, "low, medium, high, critical")
	cmd.Flags().StringArrayVar(&o.filters, "filter", nil, "any other field of the API's IssuesFilter, as `NAME=VALUE`")
	cmd.Flags().StringVar(&o.since, "since", "", "resume `TOKEN` of an earlier message; default: only what happens from now on")
	cmd.Flags().BoolVar(&o.fromOldest, "from-oldest", false, "start with the oldest change")
	cmd.Flags().StringVar(&o.state, "state", "", "`FILE` for the position: read at the start, written after each message")
	cmd.Flags().BoolVar(&o.json, "json", false, "print each change as one line of JSON")
	cmd.MarkFlagsMutuallyExclusive("since", "from-oldest")
	cmd.MarkFlagsMutuallyExclusive("since", "state")
	return cmd
}

func (o *watchOptions) query() (url.Values, error) {
	query := url.Values{}
	for name, values := range map[string][]string{"repositoryNames": o.repos, "refs": o.refs, "severities": o.severities} {
		for _, value := range values {
			query.Add("filter."+name, value)
		}
	}
	for _, f := range o.filters {
		name, value, ok := strings.Cut(f, "=")
		if !ok || name == "" {
			return nil, usagef("--filter: got %q, want NAME=VALUE, such as categories=security", printable(f))
		}
		query.Add("filter."+name, value)
	}
	if o.fromOldest {
		query.Set("from_oldest", "true")
	}
	return query, nil
}

func (o *watchOptions) run(ctx context.Context, std streams) error {
	query, err := o.query()
	if err != nil {
		return err
	}
	token := o.since
	if o.state != "" {
		if token, err = readToken(o.state); err != nil {
			return err
		}
	}
	d, err := openDeployment(ctx, o.client, std)
	if err != nil {
		return err
	}
	for {
		err := o.follow(ctx, std, d, query, &token)
		var refused *apiError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.status < 500 && refused.status != http.StatusTooManyRequests && refused.status != http.StatusConflict:
			return err
		case errors.As(err, new(*outputError)):
			return err
		}
		_, _ = fmt.Fprintf(std.err, "palisade: the stream ended (%v); connecting again\n", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.pause):
		}
	}
}

// outputError means that a change could not be printed, or the position not be written.
type outputError struct{ error }

// follow prints the changes of one connection, and moves the token.
func (o *watchOptions) follow(ctx context.Context, std streams, d *deploymentClient, query url.Values, token *string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(watchSilence, cancel)
	defer silence.Stop()
	req, err := d.request(ctx, http.MethodGet, query, nil, "api", "v1", "deployments", d.deploymentID, "findings", "changes")
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if *token != "" {
		req.Header.Set("Last-Event-ID", *token)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return d.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return readAPIError(resp)
	}
	return readEvents(resp.Body, func(e event) error {
		silence.Reset(watchSilence)
		if e.name == "error" {
			return readAPIError(&http.Response{StatusCode: errorStatus(e.data), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(e.data))})
		}
		if err := o.print(std.out, e.data); err != nil {
			return &outputError{err}
		}
		if *token = e.id; o.state != "" {
			if err := writeToken(o.state, e.id); err != nil {
				return &outputError{err}
			}
		}
		return nil
	})
}

// errorStatus is the HTTP status of an error inside a stream, as far as the command cares: what a new connection would
// get decides.
func errorStatus(body []byte) int {
	var parsed struct{ Status string }
	_ = json.Unmarshal(body, &parsed)
	switch parsed.Status {
	case "UNAUTHENTICATED":
		return http.StatusUnauthorized
	case "PERMISSION_DENIED":
		return http.StatusForbidden
	case "NOT_FOUND":
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// event is a server-sent event.
type event struct {
	id, name string
	data     []byte
}

// readEvents reads server-sent events until the stream ends.
func readEvents(from io.Reader, each func(event) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var e event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = append(e.data, value...)
		case "":
			if e.id != "" || e.data != nil {
				if err := each(e); err != nil {
					return err
				}
			}
			e = event{}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	return errors.New("the server ended it")
}

// print prints the changes of a message: each as it came, or as one line of text.
func (o *watchOptions) print(out io.Writer, data []byte) error {
	if data == nil { // a sign of life
		return nil
	}
	var message struct{ Changes []json.RawMessage }
	if err := json.Unmarshal(data, &message); err != nil {
		return fmt.Errorf("unexpected message: %w", err)
	}
	var b bytes.Buffer
	for _, raw := range message.Changes {
		if o.json {
			b.Write(raw)
			b.WriteByte('\n')
			continue
		}
		var change findingsv1.FindingChange
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &change); err != nil {
			return fmt.Errorf("unexpected change: %w", err)
		}
		b.WriteString(changeLine(&change))
	}
	_, err := out.Write(b.Bytes())
	return err
}

// changeLine is a change as text: when, what, from and to, the finding, by whom and why.
func changeLine(c *findingsv1.FindingChange) string {
	f := c.GetFinding()
	states := c.GetToStatus()
	if from := c.GetFromStatus(); from != "" && from != states {
		states = from + " -> " + states
	}
	at := f.GetPath()
	if at != "" && f.GetLine() > 0 {
		at += ":" + strconv.Itoa(int(f.GetLine()))
	}
	line := fmt.Sprintf("%s  %s (%s)  %d %s %s  %s %s %s", c.GetAt().AsTime().UTC().Format(time.DateTime), c.GetKind(), states,
		f.GetId(), orDash(f.GetSeverity()), orDash(f.GetRuleName()), orDash(f.GetProject()), orDash(shortRef(f.GetRef())), orDash(at))
	line += "  by " + strings.TrimSpace(c.GetActorKind()+" "+c.GetActorName())
	if c.GetActorId() != 0 {
		line += " " + strconv.FormatInt(c.GetActorId(), 10)
	}
	if c.GetReason() != "" {
		line += "  " + c.GetReason()
	}
	return printable(line) + "\n"
}

// readToken reads the position; a file that does not exist is the start.
func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// writeToken replaces the file, so that it always has a whole token.
func writeToken(path, token string) error {
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = next.WriteString(token + "\n")
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}
