package export

import (
	"context"
	"fmt"
	"time"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/store"
)

// about is what a file says about its export.
type about struct {
	id           int64
	deployment   string // its name
	slug         string
	baseURL      string
	created      time.Time
	deploymentID int64
	lookup       lookup
}

// link is the address of a finding in the console. Tickets have the same.
func (a *about) link(findingID int64) string {
	return fmt.Sprintf("%s/console/%s/findings/%d", a.baseURL, a.slug, findingID)
}

// url is the address of the file.
func (a *about) url() string { return exportfile.URL(a.baseURL, a.deploymentID, a.id) }

// needs are the optional parts of batches.
type needs struct{ exploits, events, matches, requests bool }

// format writes the findings of an export. The returned bytes are valid until the next call.
type format interface {
	needs() needs
	begin() ([]byte, error)
	batch(ctx context.Context, b *batch) ([]byte, error)
	end(ctx context.Context) ([]byte, error)
}

// grouped is a format that writes the findings of each analysis together.
type grouped interface {
	format
	group(ctx context.Context, g *group) ([]byte, error)
}

// kind is how findings become a format.
type kind struct {
	new func(*about) format
	// only are the findings that the format can express; nil means all.
	only []predicate.Finding
	// backup says that the format keeps what lists leave out: without it, an import would lose findings and decisions.
	backup bool
}

var kinds = map[string]kind{
	exportfile.CSV:       {new: newCSV, only: shown},
	exportfile.NDJSON:    {new: newNDJSON, backup: true},
	exportfile.SARIF:     {new: newSARIF, only: reported},
	exportfile.OpenVEX:   {new: newOpenVEX, only: aboutPackages},
	exportfile.CycloneDX: {new: newCycloneDX, only: aboutPackages},
}

// shown selects what the API shows. Backups have the other findings, too.
var shown = []predicate.Finding{issuefilter.Shown().Where}

// aboutPackages selects what VEX documents can name.
var aboutPackages = append([]predicate.Finding{finding.PackageNotNil()}, shown...)

// reported selects what the latest scans reported. Readers of results take each one for a finding of today.
var reported = []predicate.Finding{finding.StateIn(lifecycle.Unresolved, lifecycle.Muted)}

// names are the stored names of formats.
var names = map[findingsv1.ExportFormat]string{
	findingsv1.ExportFormat_EXPORT_FORMAT_UNSPECIFIED: exportfile.CSV,
	findingsv1.ExportFormat_EXPORT_FORMAT_CSV:         exportfile.CSV,
	findingsv1.ExportFormat_EXPORT_FORMAT_NDJSON:      exportfile.NDJSON,
	findingsv1.ExportFormat_EXPORT_FORMAT_SARIF:       exportfile.SARIF,
	findingsv1.ExportFormat_EXPORT_FORMAT_OPENVEX:     exportfile.OpenVEX,
	findingsv1.ExportFormat_EXPORT_FORMAT_CYCLONEDX:   exportfile.CycloneDX,
}

// types are the stored issue types. No finding has the type of research.
var types = map[findingsv1.IssueType]string{
	findingsv1.IssueType_ISSUE_TYPE_SAST: vocabulary.SAST, findingsv1.IssueType_ISSUE_TYPE_SCA: vocabulary.SCA,
	findingsv1.IssueType_ISSUE_TYPE_SECRETS: vocabulary.Secrets, findingsv1.IssueType_ISSUE_TYPE_AI_SAST: vocabulary.AISAST,
	findingsv1.IssueType_ISSUE_TYPE_RESEARCH: "research",
}

// ofTypes selects the types of findings that a request names; no condition if it names none.
func ofTypes(r *findingsv1.ExportIssuesRequest) []predicate.Finding {
	var list []string
	for _, t := range append([]findingsv1.IssueType{r.GetIssueType()}, r.GetIssueTypes()...) {
		if types[t] != "" {
			list = append(list, types[t])
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []predicate.Finding{store.OneOf(finding.FieldIssueType, list)}
}
