package issue

import (
	"fmt"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Snippets returns the code of a finding's place and of the steps of its data flows. Secrets have none.
func Snippets(row *ent.Finding) ([]*findingsv1.IssueCodeSnippet, error) {
	if row.IssueType == vocabulary.Secrets {
		return nil, nil
	}
	content, err := blob.Decode(row.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	about, err := contextOf(content)
	if err != nil {
		return nil, fmt.Errorf("finding %d: %w", row.ID, err)
	}
	return snippets(content, about.GetCodeFlows()), nil
}

// snippets returns each piece of code once: the code of the place first, then the code of the steps. Uploads bound the
// number of steps and their code.
func snippets(content *storev1.FindingContent, flows []*findingsv1.CodeFlow) []*findingsv1.IssueCodeSnippet {
	type piece struct{ path, code string }
	var list []*findingsv1.IssueCodeSnippet
	known := map[piece]bool{}
	add := func(path, code string) {
		if one := (piece{path, code}); code != "" && !known[one] {
			known[one] = true
			list = append(list, &findingsv1.IssueCodeSnippet{Path: path, Content: code})
		}
	}
	add(content.GetLocation().GetFilePath(), content.GetSnippet())
	for _, flow := range flows {
		for _, thread := range flow.GetThreadFlows() {
			for _, step := range thread.GetSteps() {
				add(step.GetLocation().GetPath(), step.GetSnippet())
			}
		}
	}
	return list
}
