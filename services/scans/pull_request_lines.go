package scans

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/markdown"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// maxLineText is the maximum length of a finding's message in a comment, in runes.
	maxLineText = 1000
	// maxRefusedLines is how many more findings are tried at once than may have a comment: hosts refuse lines that a
	// request does not change.
	maxRefusedLines = 20
)

// lineComments are the comments on lines of one pull request.
type lineComments struct {
	*requestFeedback
	store   *store.Store
	row     *ent.PullRequestFeedback
	request host.PullRequest
	written *storev1.LineComments
	// places is how many more findings may have a comment.
	places int
	// tried are the markers of earlier runs: the host may have comments with them whose ids were lost.
	tried map[string]bool
}

// writeLines comments on the lines of findings that the pull request adds, once each. It resolves the threads of
// findings that are fixed or ignored, and opens them again when the findings are back.
func (f *requestFeedback) writeLines(ctx context.Context, st *store.Store, row *ent.PullRequestFeedback, request host.PullRequest) error {
	l := &lineComments{requestFeedback: f, store: st, row: row, request: request, written: &storev1.LineComments{}, tried: map[string]bool{}}
	if err := proto.Unmarshal(row.LineComments, l.written); err != nil {
		return fmt.Errorf("decode the line comments of pull request %d: %w", row.Number, err)
	}
	for _, one := range l.written.GetComments() {
		l.tried[one.GetMarker()] = true
	}
	wanted := l.choose()
	messages, err := messagesOf(ctx, st.Reader, wanted)
	if err != nil {
		return err
	}
	if err := l.keep(ctx); err != nil {
		return err
	}
	for _, one := range wanted {
		if l.places <= 0 && l.of(one.GetId()).GetThreadId() == "" {
			continue
		}
		if err := l.show(ctx, one, messages[one.GetId()]); err != nil {
			return err
		}
	}
	return l.resolveOthers(ctx, wanted)
}

// of returns the comment of a finding; nil if none was tried.
func (l *lineComments) of(finding int64) *storev1.LineComment {
	at := slices.IndexFunc(l.written.GetComments(), func(c *storev1.LineComment) bool { return c.GetFindingId() == finding })
	if at < 0 {
		return nil
	}
	return l.written.GetComments()[at]
}

// choose returns the findings that have a comment or for which one may be tried, and notes the new ones.
func (l *lineComments) choose() (wanted []*scansv1.PullRequestFinding) {
	l.places = l.lines
	for _, one := range l.written.GetComments() {
		if one.GetThreadId() != "" {
			l.places--
		}
	}
	tries := 0
	if l.places > 0 {
		tries = l.places + maxRefusedLines
	}
	for _, one := range l.listed() {
		known := l.of(one.GetId())
		switch {
		case !one.GetAdded() || one.GetPath() == "" || one.GetLine() == 0:
		case known.GetThreadId() != "":
			wanted = append(wanted, one)
		case known != nil && known.GetRefusedAt() == l.request.Commit:
		case tries > 0:
			tries--
			wanted = append(wanted, one)
			if known == nil {
				l.written.Comments = append(l.written.Comments, &storev1.LineComment{FindingId: one.GetId(), Marker: rand.Text()})
			}
		}
	}
	return wanted
}

// messagesOf reads what scanners say about findings.
func messagesOf(ctx context.Context, db *ent.Client, wanted []*scansv1.PullRequestFinding) (map[int64]string, error) {
	ids := make([]int64, len(wanted))
	for i, one := range wanted {
		ids[i] = one.GetId()
	}
	rows, err := db.Finding.Query().Where(store.OneOf(finding.FieldID, ids)).Select(finding.FieldID, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	messages := make(map[int64]string, len(rows))
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, err
		}
		messages[row.ID] = content.GetMessage()
	}
	return messages, nil
}

// keep stores the comments so far.
func (l *lineComments) keep(ctx context.Context, with ...func(context.Context, *ent.Tx) error) error {
	encoded, err := proto.Marshal(l.written)
	if err != nil {
		return err
	}
	l.row.LineComments = encoded
	return l.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		for _, also := range with {
			if err := also(ctx, tx); err != nil {
				return err
			}
		}
		return tx.PullRequestFeedback.Update().Where(pullrequestfeedback.ID(l.row.ID)).SetLineComments(encoded).Exec(ctx)
	})
}

// show writes or updates the comment of a finding.
func (l *lineComments) show(ctx context.Context, one *scansv1.PullRequestFinding, message string) error {
	comment := l.of(one.GetId())
	text := l.lineText(comment, one, message)
	digest := digestOf(text)
	if comment.GetThreadId() == "" {
		return l.begin(ctx, comment, host.Line{Path: one.GetPath(), Line: int64(one.GetLine())}, text, digest)
	}
	before := proto.CloneOf(comment)
	thread := host.Thread{ID: comment.GetThreadId(), Note: comment.GetNoteId()}
	if comment.GetDigest() != digest {
		if err := l.host.EditThread(ctx, l.repository, l.row.Number, thread, text); err != nil && !host.Is(err, host.NotFound) {
			return err
		}
		comment.Digest = digest
	}
	if comment.GetResolved() {
		if err := l.setResolved(ctx, comment, false); err != nil {
			return err
		}
	}
	if proto.Equal(before, comment) {
		return nil
	}
	return l.keep(ctx)
}

// begin writes the comment, and notes it in the finding. If an earlier run ended before it knew the answer of the host,
// the comment is found by its marker.
func (l *lineComments) begin(ctx context.Context, comment *storev1.LineComment, at host.Line, text, digest string) error {
	var thread host.Thread
	var err error
	if l.tried[comment.GetMarker()] {
		thread, err = l.host.FindThread(ctx, l.repository, l.row.Number, comment.GetMarker())
	}
	if err == nil && thread.ID == "" {
		thread, err = l.host.CommentOnLine(ctx, l.repository, l.request, at, text)
	}
	if host.Is(err, host.Outside) {
		comment.RefusedAt = l.request.Commit
		return l.keep(ctx)
	}
	if err != nil {
		return err
	}
	l.places--
	comment.ThreadId, comment.NoteId, comment.Digest, comment.RefusedAt = thread.ID, thread.Note, digest, ""
	return l.keep(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return ignoreNotFound(verdict.Amend(ctx, l.store, tx, comment.GetFindingId(), func(content *storev1.FindingContent, _ *ent.FindingUpdate) {
			content.ReviewComments = []*findingsv1.ReviewComment{{ExternalDiscussionId: thread.ID, ExternalNoteId: thread.Note}}
		}))
	})
}

// lineText is the comment about a finding. Webhooks find the finding of a reply by its beginning.
func (l *lineComments) lineText(comment *storev1.LineComment, one *scansv1.PullRequestFinding, message string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- palisade:finding=%d %s -->\n**%s** severity: %s\n\n", one.GetId(), comment.GetMarker(), one.GetSeverity(), markdown.Span(clip(one.GetRuleName(), maxCell)))
	if message = clip(message, maxLineText); message != "" {
		fmt.Fprintf(&b, "%s\n\n", markdown.Span(message))
	}
	if len(one.GetBlockedBy()) > 0 {
		fmt.Fprintf(&b, "It blocks this pull request: %s.\n\n", markdown.Span(clip(strings.Join(one.GetBlockedBy(), ", "), maxCell)))
	}
	fmt.Fprintf(&b, "[The finding](%s%d)", l.finding, one.GetId())
	if l.replies {
		b.WriteString(". To ignore it, reply `/fp`, `/ar` or `/other` and a reason")
	}
	b.WriteString(".\n")
	l.writeAddendum(&b, commentProducts[one.GetIssueType()].String())
	return b.String()
}

// resolveOthers resolves the threads of the findings that are not wanted any more. If the view does not list all
// findings, the ones that it lacks are not known to be gone.
func (l *lineComments) resolveOthers(ctx context.Context, wanted []*scansv1.PullRequestFinding) error {
	for _, comment := range l.written.GetComments() {
		of := func(one *scansv1.PullRequestFinding) bool { return one.GetId() == comment.GetFindingId() }
		known := slices.ContainsFunc(l.view.GetFindings(), of) || l.view.GetFindingsOmitted() == 0
		if comment.GetThreadId() == "" || comment.GetResolved() || slices.ContainsFunc(wanted, of) || !known {
			continue
		}
		if err := l.setResolved(ctx, comment, true); err != nil {
			return err
		}
		if err := l.keep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setResolved resolves a thread or opens it again. A thread that a person deleted stays deleted.
func (l *lineComments) setResolved(ctx context.Context, comment *storev1.LineComment, resolved bool) error {
	err := l.host.ResolveThread(ctx, l.repository, l.row.Number, host.Thread{ID: comment.GetThreadId(), Note: comment.GetNoteId()}, resolved)
	if err != nil && !host.Is(err, host.NotFound) {
		return err
	}
	comment.Resolved = resolved
	return nil
}

// countLines counts the findings with a comment on their line.
func countLines(stored []byte) (n int32, err error) {
	var written storev1.LineComments
	err = proto.Unmarshal(stored, &written)
	for _, one := range written.GetComments() {
		if one.GetThreadId() != "" {
			n++
		}
	}
	return n, err
}
