package host

import (
	"context"
	"net/http"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// CommentOnLine begins a discussion on an added line. GitLab wants the commits of the request's latest version.
func (h *gitLab) CommentOnLine(ctx context.Context, repository string, request PullRequest, at Line, text string) (Thread, error) {
	position := &gitlab.PositionOptions{
		PositionType: gitlab.Ptr("text"), BaseSHA: &request.diff.base, StartSHA: &request.diff.start, HeadSHA: &request.diff.head,
		OldPath: &at.Path, NewPath: &at.Path, NewLine: &at.Line,
	}
	discussion, response, err := h.client.Discussions.CreateMergeRequestDiscussion(repository, request.Number,
		&gitlab.CreateMergeRequestDiscussionOptions{Body: &text, Position: position}, gitlab.WithContext(ctx))
	if response != nil && response.StatusCode == http.StatusBadRequest && isOutside(err.Error(), "line_code", "position") {
		return Thread{}, &Error{Kind: Outside, Text: "the merge request does not add this line", cause: err}
	}
	if err != nil {
		return Thread{}, gitLabError(err)
	}
	if discussion.ID == "" || len(discussion.Notes) == 0 {
		return Thread{}, malformed("the host's answer is not a discussion of GitLab", nil)
	}
	return gitLabThread(discussion), nil
}

func gitLabThread(discussion *gitlab.Discussion) Thread {
	return Thread{ID: discussion.ID, Note: discussion.Notes[0].ID}
}

// FindThread reads the discussions of the merge request.
func (h *gitLab) FindThread(ctx context.Context, repository string, number int64, text string) (Thread, error) {
	pages := paged(func(page int) ([]*gitlab.Discussion, int, error) {
		list, response, err := h.client.Discussions.ListMergeRequestDiscussions(repository, number, &gitlab.ListMergeRequestDiscussionsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize},
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return list, nextComments(page, int(response.NextPage)), nil
	})
	for discussion, err := range pages {
		if err != nil {
			return Thread{}, err
		}
		if len(discussion.Notes) > 0 && strings.Contains(discussion.Notes[0].Body, text) {
			return gitLabThread(discussion), nil
		}
	}
	return Thread{}, nil
}

// EditThread replaces the text of the note.
func (h *gitLab) EditThread(ctx context.Context, repository string, number int64, thread Thread, text string) error {
	_, _, err := h.client.Discussions.UpdateMergeRequestDiscussionNote(repository, number, thread.ID, thread.Note,
		&gitlab.UpdateMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	return gitLabError(err)
}

// ResolveThread resolves the discussion.
func (h *gitLab) ResolveThread(ctx context.Context, repository string, number int64, thread Thread, resolved bool) error {
	_, _, err := h.client.Discussions.ResolveMergeRequestDiscussion(repository, number, thread.ID,
		&gitlab.ResolveMergeRequestDiscussionOptions{Resolved: &resolved}, gitlab.WithContext(ctx))
	return gitLabError(err)
}
