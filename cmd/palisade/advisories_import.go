package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// Limits of a request: the server takes 500 advisories and 8 MiB.
const (
	batchSize    = 500
	batchBytes   = 4 << 20
	maxAdvisory  = 6 << 20
	shownSkipped = 20
)

func newAdvisoriesImport(std streams) *cobra.Command {
	var flags clientFlags
	var maliciousOnly bool
	cmd := &cobra.Command{
		Use:   "import DIR|ZIP|CSV|JSON",
		Short: "Import advisories in the OSV format, exploit predictions, or known exploits",
		Long: `Import one of these:

- Advisories in the OSV format: all .json files below a directory, or in a zip file such as
  https://osv-vulnerabilities.storage.googleapis.com/npm/all.zip. A stored advisory changes only if the file's was
  modified later.
- FIRST's predictions of exploits (EPSS): a CSV file, plain or compressed by gzip, such as
  https://epss.empiricalsecurity.com/epss_scores-current.csv.gz. A stored prediction changes only if the file's is of
  a later day.
- CISA's catalogue of known exploits (KEV): a JSON file, plain or compressed by gzip, such as
  https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json. It replaces the stored catalogue.

Supply-chain findings show the prediction and the known exploit of their CVE. Repeating an import changes nothing, and
an interrupted import can be repeated.

Exit status: 0 all files were uploaded; 2 an error, or files that are not JSON.`,
		Example: `  palisade advisories import ./malicious-packages/osv --malicious-only
  palisade advisories import all.zip --malicious-only
  palisade advisories import epss_scores-current.csv.gz
  palisade advisories import known_exploited_vulnerabilities.json`,
		Args: exactlyOne("a directory or a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !maliciousOnly && isFeed(args[0]) {
				return importFeed(cmd.Context(), args[0], flags, std)
			}
			files, closeFiles, err := openAdvisories(args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", printable(args[0]), err)
			}
			defer closeFiles()
			firewall, err := openFirewall(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			i := &advisoryImport{firewall: firewall, std: std, maliciousOnly: maliciousOnly}
			return i.run(cmd.Context(), files)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&maliciousOnly, "malicious-only", false, "skip advisories about vulnerabilities, which never block")
	return cmd
}

// isFeed reports whether a file is neither a directory nor a zip file.
func isFeed(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	archive, err := zip.OpenReader(name)
	if err == nil {
		_ = archive.Close()
	}
	return errors.Is(err, zip.ErrFormat)
}

func importFeed(ctx context.Context, name string, flags clientFlags, std streams) error {
	feed, err := openFeed(name, std)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(name), err)
	}
	defer feed.close()
	firewall, err := openFirewall(ctx, flags, std)
	if err != nil {
		return err
	}
	i := &exploitImport{firewall: firewall, std: std}
	if err := i.run(ctx, feed); err != nil {
		return fmt.Errorf("%s: %w", printable(name), err)
	}
	return nil
}

// openAdvisories opens a directory or a zip file.
func openAdvisories(name string) (fs.FS, func(), error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, errors.Unwrap(err)
	}
	if info.IsDir() {
		return os.DirFS(name), func() {}, nil
	}
	archive, err := zip.OpenReader(name)
	if errors.Is(err, zip.ErrFormat) {
		return nil, nil, errors.New("is neither a directory nor a zip file")
	}
	if err != nil {
		return nil, nil, err
	}
	return archive, func() { _ = archive.Close() }, nil
}

// advisoryImport uploads files in batches and sums up the results.
type advisoryImport struct {
	*firewall
	std           streams
	maliciousOnly bool
	bar           *progressbar.ProgressBar // nil away from a terminal

	batch []json.RawMessage
	names []string // file names in the batch
	size  int

	created, updated, unchanged, skipped, leftOut, unreadable int
	notRegular                                                int
}

func (i *advisoryImport) run(ctx context.Context, files fs.FS) error {
	var names []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		if !entry.Type().IsRegular() { // reading a FIFO would block, and a link may point anywhere
			i.notRegular++
			_, _ = fmt.Fprintf(i.std.err, "skipped %s: not a regular file\n", printable(name))
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("it contains no regular .json files")
	}
	if isTerminal(i.std.err) {
		i.bar = progressbar.NewOptions(len(names), progressbar.OptionSetWriter(i.std.err), progressbar.OptionSetDescription("Advisories"),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
		defer func() { _ = i.bar.Finish() }()
	}
	for _, name := range names {
		if err := i.add(ctx, files, name); err != nil {
			return i.withProgress(err)
		}
	}
	if err := i.send(ctx); err != nil {
		return i.withProgress(err)
	}
	if i.bar != nil {
		_ = i.bar.Finish()
	}
	_, err = fmt.Fprintf(i.std.out, "%d files: created %d, updated %d, unchanged %d, skipped %d, left out %d, unreadable %d%s\n",
		len(names), i.created, i.updated, i.unchanged, i.skipped, i.leftOut, i.unreadable, i.noFiles())
	if err == nil && i.unreadable > 0 {
		return errReported
	}
	return err
}

// noFiles counts the entries that were skipped because they are not regular files.
func (i *advisoryImport) noFiles() string {
	if i.notRegular == 0 {
		return ""
	}
	return fmt.Sprintf(", no regular files %d", i.notRegular)
}

// withProgress adds to an error what has been stored before it.
func (i *advisoryImport) withProgress(err error) error {
	return fmt.Errorf("%w\n  %d advisories were created and %d updated before; repeat the import for the rest", err, i.created, i.updated)
}

// add adds a file to the batch, and uploads a full batch.
func (i *advisoryImport) add(ctx context.Context, files fs.FS, name string) error {
	raw, err := readAdvisory(files, name)
	switch {
	case err != nil:
		i.unreadable++
		_, _ = fmt.Fprintf(i.std.err, "palisade: %s: %v\n", printable(name), err)
		i.progress(1)
		return nil
	case i.maliciousOnly && !mayBeMalicious(raw):
		i.leftOut++
		i.progress(1)
		return nil
	}
	if len(i.batch) == batchSize || i.size+len(raw) > batchBytes {
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	i.batch, i.names, i.size = append(i.batch, raw), append(i.names, name), i.size+len(raw)
	return nil
}

func (i *advisoryImport) progress(n int) {
	if i.bar != nil {
		_ = i.bar.Add(n)
	}
}

func readAdvisory(files fs.FS, name string) (json.RawMessage, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxAdvisory+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxAdvisory:
		return nil, fmt.Errorf("is longer than %d bytes", maxAdvisory)
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, errors.New("is not a JSON object")
	}
	return raw, nil
}

// mayBeMalicious prefilters advisories: it is false only for a document that is certainly about a vulnerability. The
// server makes the decision about all others.
func mayBeMalicious(raw []byte) bool {
	return bytes.Contains(raw, []byte("MAL-")) || bytes.Contains(raw, []byte("malicious-packages-origins"))
}

// post uploads a part of an import.
func (f *firewall) post(ctx context.Context, content, answer any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	req, err := f.request(ctx, http.MethodPost, nil, bytes.NewReader(body), "api", "sca", "deployments", f.deploymentID, "advisories")
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return f.do(req, answer)
}

func (i *advisoryImport) send(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	var answer struct {
		Created, Updated, Unchanged int
		Skipped                     []struct {
			Index      int
			ID, Reason string
		}
	}
	if err := i.post(ctx, map[string]any{"advisories": i.batch, "maliciousOnly": i.maliciousOnly}, &answer); err != nil {
		return err
	}
	i.created, i.updated, i.unchanged = i.created+answer.Created, i.updated+answer.Updated, i.unchanged+answer.Unchanged
	for _, s := range answer.Skipped {
		i.skipped++
		if i.skipped <= shownSkipped && s.Index >= 0 && s.Index < len(i.names) {
			_, _ = fmt.Fprintf(i.std.err, "skipped %s: %s\n", printable(i.names[s.Index]), printable(s.Reason))
		} else if i.skipped == shownSkipped+1 {
			_, _ = fmt.Fprintln(i.std.err, "more were skipped; the number is shown at the end")
		}
	}
	i.progress(len(i.batch))
	i.batch, i.names, i.size = nil, nil, 0
	return nil
}
