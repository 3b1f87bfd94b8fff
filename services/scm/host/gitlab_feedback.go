package host

import (
	"context"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// SetStatus sets a commit status. GitLab refuses the state that it has already.
func (h *gitLab) SetStatus(ctx context.Context, repository, commit string, status Status) error {
	state := gitlab.BuildStateValue(status.word(string(gitlab.Success), string(gitlab.Failed), string(gitlab.Running)))
	_, err := gitLabAnswer(h.client.Commits.SetCommitStatus(repository, commit, &gitlab.SetCommitStatusOptions{
		State: state, Name: &status.Name, Description: &status.Text, TargetURL: &status.URL,
	}, gitlab.WithContext(ctx)))
	if err != nil && !(Is(err, Refused) && strings.Contains(err.Error(), "Cannot transition status")) {
		return err
	}
	return nil
}

// FindComment reads the notes of the merge request, the oldest first.
func (h *gitLab) FindComment(ctx context.Context, repository string, number int64, text string) (string, error) {
	pages := paged(func(page int) ([]*gitlab.Note, int, error) {
		list, response, err := h.client.Notes.ListMergeRequestNotes(repository, number, &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("asc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return list, nextComments(page, int(response.NextPage)), nil
	})
	for note, err := range pages {
		if err != nil {
			return "", err
		}
		if note.ID == 0 {
			return "", malformed("the host's answer is not a list of notes of GitLab", nil)
		}
		if strings.Contains(note.Body, text) {
			return strconv.FormatInt(note.ID, 10), nil
		}
	}
	return "", nil
}

// Comment adds a note to the merge request.
func (h *gitLab) Comment(ctx context.Context, repository string, number int64, text string) (string, error) {
	options := &gitlab.CreateMergeRequestNoteOptions{Body: &text}
	note, err := gitLabAnswer(h.client.Notes.CreateMergeRequestNote(repository, number, options, gitlab.WithContext(ctx)))
	if err != nil {
		return "", err
	}
	if note.ID == 0 {
		return "", malformed("the host's answer is not a note of GitLab", nil)
	}
	return strconv.FormatInt(note.ID, 10), nil
}

// EditComment replaces a note's text.
func (h *gitLab) EditComment(ctx context.Context, repository string, number int64, id, text string) error {
	note, err := strconv.ParseInt(id, 10, 64)
	if err != nil || note <= 0 {
		return &Error{Kind: NotFound, Text: "GitLab has no note " + strconv.Quote(clip(id))}
	}
	options := &gitlab.UpdateMergeRequestNoteOptions{Body: &text}
	_, err = gitLabAnswer(h.client.Notes.UpdateMergeRequestNote(repository, number, note, options, gitlab.WithContext(ctx)))
	return err
}
