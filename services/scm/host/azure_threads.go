package host

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// azureFirst is the id of the first comment of each thread.
const azureFirst = 1

// azureComment is a comment in an answer.
type azureComment struct {
	ID        int64
	Content   string
	IsDeleted bool
	Author    struct{ UniqueName string }
}

func (c *azureComment) check() error {
	if c.ID == 0 {
		return malformed("the host's answer is not a comment of Azure DevOps", nil)
	}
	return nil
}

// azurePosition is a place in a line, both counted from 1.
type azurePosition struct {
	Line   int64 `json:"line"`
	Offset int64 `json:"offset"`
}

// azureFile is the place of a thread. The right side is the newer version.
type azureFile struct {
	FilePath       string         `json:"filePath"`
	RightFileStart *azurePosition `json:"rightFileStart,omitempty"`
	RightFileEnd   *azurePosition `json:"rightFileEnd,omitempty"`
}

// azureThread is a thread in an answer.
type azureThread struct {
	ID            int64
	IsDeleted     bool
	Status        string
	Comments      []*azureComment
	ThreadContext *azureFile
}

func (t *azureThread) id() string { return strconv.FormatInt(t.ID, 10) }

func (t *azureThread) check() error {
	if t.ID == 0 || len(t.Comments) == 0 || t.Comments[0] == nil || t.Comments[0].ID == 0 {
		return malformed("the host's answer is not a thread of Azure DevOps", nil)
	}
	return nil
}

// has reports whether the first comment has a text. Deleted comments have none.
func (t *azureThread) has(text string) bool {
	return !t.IsDeleted && !t.Comments[0].IsDeleted && strings.Contains(t.Comments[0].Content, text)
}

// azureNewComment and its sibling are the contents of requests.
type azureNewComment struct {
	ParentCommentID int64  `json:"parentCommentId,omitempty"`
	Content         string `json:"content"`
	CommentType     string `json:"commentType,omitempty"`
}

type azureNewThread struct {
	Comments      []azureNewComment  `json:"comments"`
	Status        string             `json:"status"`
	ThreadContext *azureFile         `json:"threadContext,omitempty"`
	PullContext   *azurePullContexts `json:"pullRequestThreadContext,omitempty"`
}

// azurePullContexts says in which change of which iterations a thread is, so that it follows later pushes.
type azurePullContexts struct {
	ChangeTrackingID int64 `json:"changeTrackingId"`
	IterationContext struct {
		First  int `json:"firstComparingIteration"`
		Second int `json:"secondComparingIteration"`
	} `json:"iterationContext"`
}

// threads reads all threads of a pull request, which come in one answer.
func (h *azure) threads(ctx context.Context, repository string, number int64) (threads []*azureThread, err error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return nil, err
	}
	list, err := azureItems[azureThread](ctx, h, at.pull(number, "/threads"), nil)
	if err != nil {
		return nil, err
	}
	for _, thread := range list {
		if err := thread.check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (h *azure) begin(ctx context.Context, at azurePlace, number int64, wanted azureNewThread) (*azureThread, error) {
	made := &azureThread{}
	if err := h.call(ctx, http.MethodPost, at.pull(number, "/threads"), nil, wanted, made); err != nil {
		return nil, err
	}
	return made, made.check()
}

// CommentOnLine begins a thread on a line that the newest iteration adds or changes. Azure DevOps takes any line: the
// changes are read first.
func (h *azure) CommentOnLine(ctx context.Context, repository string, request PullRequest, at Line, text string) (Thread, error) {
	place, err := azureRepositoryOf(repository)
	if err != nil {
		return Thread{}, err
	}
	newest, err := h.newest(ctx, place, request.Number)
	if err != nil {
		return Thread{}, err
	}
	change, err := h.changeOf(ctx, place, request.Number, newest, at.Path)
	if err != nil {
		return Thread{}, err
	}
	outside := &Error{Kind: Outside, Text: "the pull request does not change this line"}
	if change == nil {
		return Thread{}, outside
	}
	if touched, err := h.touches(ctx, place, newest, change, at.Line); err != nil || !touched {
		if err == nil {
			err = outside
		}
		return Thread{}, err
	}
	position := &azurePosition{Line: at.Line, Offset: 1}
	wanted := azureNewThread{
		Comments: []azureNewComment{{Content: text, CommentType: "text"}}, Status: "active",
		ThreadContext: &azureFile{FilePath: "/" + at.Path, RightFileStart: position, RightFileEnd: position},
		PullContext:   &azurePullContexts{ChangeTrackingID: change.ChangeTrackingID},
	}
	wanted.PullContext.IterationContext.First, wanted.PullContext.IterationContext.Second = newest.ID, newest.ID
	made, err := h.begin(ctx, place, request.Number, wanted)
	if err != nil {
		return Thread{}, err
	}
	return Thread{ID: made.id(), Note: made.Comments[0].ID}, nil
}

// FindThread reads the threads of the pull request that are on a file.
func (h *azure) FindThread(ctx context.Context, repository string, number int64, text string) (Thread, error) {
	threads, err := h.threads(ctx, repository, number)
	if err != nil {
		return Thread{}, err
	}
	for _, thread := range threads {
		if thread.ThreadContext != nil && thread.has(text) {
			return Thread{ID: thread.id(), Note: thread.Comments[0].ID}, nil
		}
	}
	return Thread{}, nil
}

// EditThread replaces the text of the first comment.
func (h *azure) EditThread(ctx context.Context, repository string, number int64, thread Thread, text string) error {
	return h.editFirst(ctx, repository, number, thread.ID, text)
}

// ResolveThread marks the thread as fixed, or as active again.
func (h *azure) ResolveThread(ctx context.Context, repository string, number int64, thread Thread, resolved bool) error {
	at, id, err := azureThreadAt(repository, thread.ID)
	if err != nil {
		return err
	}
	wanted := struct {
		Status string `json:"status"`
	}{"active"}
	if resolved {
		wanted.Status = "fixed"
	}
	changed := &azureThread{}
	if err := h.call(ctx, http.MethodPatch, at.pull(number, "/threads/"+id), nil, wanted, changed); err != nil {
		return err
	}
	return changed.check()
}

// ReviewThread returns the first comment of a thread.
func (h *azure) ReviewThread(ctx context.Context, repository string, number int64, thread string) (ReviewComment, error) {
	at, id, err := azureThreadAt(repository, thread)
	if err != nil {
		return ReviewComment{}, err
	}
	found := &azureThread{}
	if err := h.call(ctx, http.MethodGet, at.pull(number, "/threads/"+id), nil, nil, found); err != nil {
		return ReviewComment{}, err
	}
	if err := found.check(); err != nil {
		return ReviewComment{}, err
	}
	first := found.Comments[0]
	if first.Author.UniqueName == "" {
		return ReviewComment{}, malformed("the host's answer is not a thread of Azure DevOps", nil)
	}
	comment := ReviewComment{
		ID: found.id(), Author: printable(first.Author.UniqueName), Body: first.Content,
		URL: h.pullURL(at, number) + "?discussionId=" + found.id(),
	}
	if on := found.ThreadContext; on != nil {
		comment.Path = strings.TrimPrefix(on.FilePath, "/")
		if on.RightFileStart != nil {
			comment.Line = on.RightFileStart.Line
		}
	}
	return comment, nil
}

// ReplyToReviewComment replies to the first comment of a thread.
func (h *azure) ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error {
	at, id, err := azureThreadAt(repository, thread)
	if err != nil {
		return err
	}
	made := &azureComment{}
	wanted := azureNewComment{ParentCommentID: azureFirst, Content: text, CommentType: "text"}
	if err := h.call(ctx, http.MethodPost, at.pull(number, "/threads/"+id+"/comments"), nil, wanted, made); err != nil {
		return err
	}
	return made.check()
}
