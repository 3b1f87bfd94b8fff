package scans

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/markdown"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// maxCommented is how many findings the comment lists.
	maxCommented = 20
	// maxCell is the maximum length of a name or path in the comment, in runes.
	maxCell = 200
	// maxAddendum is the maximum length of an own text in the comment in bytes. Hosts accept 65,536 for the whole.
	maxAddendum = 12_000
)

// writeComment writes the comment, if it has changed. A pull request that never had new or blocking findings gets none.
// A comment that a person deleted comes back only with another text.
func (f *requestFeedback) writeComment(ctx context.Context, row *ent.PullRequestFeedback) error {
	listed := f.listed()
	if row.CommentDigest == "" && len(listed) == 0 && !f.view.GetBlocked() {
		return nil
	}
	text := f.commentText(row.Marker, listed)
	digest := digestOf(text)
	if digest == row.CommentDigest {
		return nil
	}
	err := f.replaceComment(ctx, row, text)
	if err == nil {
		row.CommentDigest = digest
	}
	return err
}

// replaceComment edits the comment, and writes it if it is not there. If a run ended after it had written the comment,
// and before it stored the id, the comment is found by its marker.
func (f *requestFeedback) replaceComment(ctx context.Context, row *ent.PullRequestFeedback, text string) (err error) {
	if row.CommentID == "" {
		if row.CommentID, err = f.host.FindComment(ctx, f.repository, row.Number, markerOf(row.Marker)); err != nil {
			return err
		}
	}
	if row.CommentID != "" {
		if err = f.host.EditComment(ctx, f.repository, row.Number, row.CommentID, text); !host.Is(err, host.NotFound) {
			return err
		}
	}
	row.CommentID, err = f.host.Comment(ctx, f.repository, row.Number, text)
	return err
}

// markerOf is the invisible text in a comment by which it is found.
func markerOf(random string) string { return "<!-- palisade:pull-request=" + random + " -->" }

// listed are the findings for the comment: those that the pull request adds or that block it, without the ones that
// people ignored and the ones of monitored rules.
func (f *requestFeedback) listed() (list []*scansv1.PullRequestFinding) {
	for _, one := range f.view.GetFindings() {
		if !one.GetMonitored() && one.GetStatus() != lifecycle.Ignored {
			list = append(list, one)
		}
	}
	return list
}

func (f *requestFeedback) commentText(random string, listed []*scansv1.PullRequestFinding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### %s: %s\n\n", markerOf(random), statusName, headline(f.view.GetBlocked(), len(listed)+int(f.view.GetFindingsOmitted())))
	for _, blocker := range f.view.GetBlockers() {
		fmt.Fprintf(&b, "- **Blocked** by %s: %s%s\n", code(blocker.GetName()), counted(int(blocker.GetFindings())), inBrackets(blocker.GetReason()))
	}
	if len(f.view.GetBlockers()) > 0 {
		b.WriteString("\n")
	}
	f.writeTable(&b, listed)
	fmt.Fprintf(&b, "Fixed here: %d. Ignored by people: %d. [All findings and how to decide about them](%s)\n", f.view.GetFixed(), f.view.GetIgnored(), f.page)
	for _, product := range productsOf(listed) {
		f.writeAddendum(&b, product)
	}
	return b.String()
}

// writeAddendum adds the deployment's own text about a product.
func (f *requestFeedback) writeAddendum(b *strings.Builder, product string) {
	if text := f.addenda[product]; text != "" {
		b.WriteString("\n" + strings.ToValidUTF8(text[:min(len(text), maxAddendum)], "") + "\n")
	}
}

// digestOf tells whether a text has changed since it was written.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func headline(blocked bool, findings int) string {
	switch {
	case blocked:
		return "this pull request is blocked"
	case findings == 0:
		return "no new findings"
	}
	return strings.Replace(counted(findings), " ", " new ", 1)
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + code(text) + ")"
}

// writeTable lists findings: blocking ones first, then the highest severity, as the view sorts them.
func (f *requestFeedback) writeTable(b *strings.Builder, listed []*scansv1.PullRequestFinding) {
	if len(listed) == 0 {
		return
	}
	b.WriteString("| Severity | Finding | Place | |\n| --- | --- | --- | --- |\n")
	for _, one := range listed[:min(len(listed), maxCommented)] {
		place, blocks := one.GetPath(), ""
		if place != "" && one.GetLine() > 0 {
			place = fmt.Sprintf("%s:%d", place, one.GetLine())
		}
		if len(one.GetBlockedBy()) > 0 {
			blocks = "blocks"
		}
		fmt.Fprintf(b, "| %s | [%s](%s%d) | %s | %s |\n", one.GetSeverity(), code(one.GetRuleName()), f.finding, one.GetId(), code(place), blocks)
	}
	b.WriteString("\n")
	if more := len(listed) + int(f.view.GetFindingsOmitted()) - maxCommented; more > 0 {
		fmt.Fprintf(b, "%d more are not shown here.\n\n", more)
	}
}

// code shows a text of a report as it is: a code span has no links, mentions and markup, and no end of a table's cell.
func code(text string) string {
	text = strings.ReplaceAll(clip(text, maxCell), "|", `\|`)
	if text == "" {
		return ""
	}
	return markdown.Span(text)
}

// commentProducts are the products of own texts by type of finding.
var commentProducts = map[string]scmv1.Product{
	vocabulary.SAST: scmv1.Product_PRODUCT_SAST, vocabulary.SCA: scmv1.Product_PRODUCT_SCA,
	vocabulary.Secrets: scmv1.Product_PRODUCT_SECRETS, vocabulary.AISAST: scmv1.Product_PRODUCT_AI_SAST,
}

// productsOf returns the products of findings, in the order of the vocabulary.
func productsOf(listed []*scansv1.PullRequestFinding) (list []string) {
	for _, kind := range vocabulary.Products {
		for _, one := range listed {
			if one.GetIssueType() == kind {
				list = append(list, commentProducts[kind].String())
				break
			}
		}
	}
	return list
}
