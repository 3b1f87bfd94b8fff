package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// outputName is the artifact that holds a task's output for other steps.
	outputName = "output"
	// itemsPerArtifact is the number of foreach items in one artifact. A task reads only the artifact with its item.
	itemsPerArtifact = 50
	// itemsPrefix is the name prefix of these artifacts. Names of other artifacts contain no colon.
	itemsPrefix = "items:"
	// previewRunes is how much of an item the graph shows.
	previewRunes = 120
)

var codec = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(2*step.MaxArtifacts), zstd.WithDecoderConcurrency(2))
	if err != nil {
		panic(err)
	}
	return encoder, decoder
})

func compress(content []byte) []byte {
	encoder, _ := codec()
	return encoder.EncodeAll(content, nil)
}

func decompress(content []byte) ([]byte, error) {
	_, decoder := codec()
	plain, err := decoder.DecodeAll(content, nil)
	if err != nil {
		return nil, fmt.Errorf("stored artifact: %w", err)
	}
	return plain, nil
}

// packed is an artifact ready to be stored.
type packed struct {
	name    string
	size    int64
	content []byte
}

func pack(name string, content []byte) packed {
	return packed{name: name, size: int64(len(content)), content: compress(content)}
}

// packItems creates the artifacts for the list of a foreach.
func packItems(items []json.RawMessage) ([]packed, error) {
	var out []packed
	for chunk := range slices.Chunk(items, itemsPerArtifact) {
		content, err := json.Marshal(chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, pack(itemsPrefix+strconv.Itoa(len(out)), content))
	}
	return out, nil
}

// storeArtifacts writes artifacts of a task and replaces existing ones with the same name.
func storeArtifacts(ctx context.Context, tx *ent.Tx, runID, taskID int64, artifacts []packed) error {
	if len(artifacts) == 0 {
		return nil
	}
	names := make([]string, len(artifacts))
	creates := make([]*ent.WorkflowArtifactCreate, len(artifacts))
	for i, a := range artifacts {
		names[i] = a.name
		creates[i] = tx.WorkflowArtifact.Create().SetRunID(runID).SetTaskID(taskID).SetName(a.name).SetSize(a.size).
			SetContent(a.content).SetCreatedAt(store.Now())
	}
	for chunk := range slices.Chunk(names, 500) {
		_, err := tx.WorkflowArtifact.Delete().Where(workflowartifact.TaskID(taskID), workflowartifact.NameIn(chunk...)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(creates, 100) {
		if err := tx.WorkflowArtifact.CreateBulk(chunk...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readArtifact reads an artifact of a task of the run.
func readArtifact(ctx context.Context, db *ent.Client, runID, taskID int64, name string) ([]byte, error) {
	row, err := db.WorkflowArtifact.Query().Where(workflowartifact.TaskID(taskID), workflowartifact.Name(name), workflowartifact.RunID(runID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, step.Permanent("task %d of this run has no artifact %q", taskID, name)
	}
	if err != nil {
		return nil, err
	}
	return decompress(row.Content)
}

// outputs reads the outputs of tasks. More than limit bytes in total is an error. Tasks without an output are left out.
func outputs(ctx context.Context, db *ent.Client, taskIDs []int64, limit int64) (map[int64]any, error) {
	if len(taskIDs) == 0 {
		return nil, nil
	}
	ofTasks := func(s *entsql.Selector) { s.Where(store.InIDs(s.C(workflowartifact.FieldTaskID), taskIDs)) }
	sizes, err := db.WorkflowArtifact.Query().Where(ofTasks, workflowartifact.Name(outputName)).Select(workflowartifact.FieldSize).Ints(ctx)
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, size := range sizes {
		sum += int64(size)
	}
	if sum > limit {
		return nil, step.Permanent("the outputs that the step reads are together %d bytes, want at most %d", sum, limit)
	}
	rows, err := db.WorkflowArtifact.Query().Where(ofTasks, workflowartifact.Name(outputName)).All(ctx)
	if err != nil {
		return nil, err
	}
	values := make(map[int64]any, len(rows))
	for _, row := range rows {
		plain, err := decompress(row.Content)
		if err != nil {
			return nil, err
		}
		var value any
		if err := json.Unmarshal(plain, &value); err != nil {
			return nil, fmt.Errorf("output of task %d: %w", row.TaskID, err)
		}
		values[row.TaskID] = value
	}
	return values, nil
}

// itemsOf reads the items [from, to) of the list of a foreach task.
func itemsOf(ctx context.Context, db *ent.Client, runID, taskID int64, from, to int) ([]json.RawMessage, error) {
	var items []json.RawMessage
	for chunk := from / itemsPerArtifact; chunk*itemsPerArtifact < to; chunk++ {
		content, err := readArtifact(ctx, db, runID, taskID, itemsPrefix+strconv.Itoa(chunk))
		if err != nil {
			return nil, err
		}
		var part []json.RawMessage
		if err := json.Unmarshal(content, &part); err != nil {
			return nil, fmt.Errorf("items of task %d: %w", taskID, err)
		}
		first := chunk * itemsPerArtifact
		items = append(items, part[min(max(from-first, 0), len(part)):min(max(to-first, 0), len(part))]...)
	}
	return items, nil
}

// preview is the beginning of an item's JSON.
func preview(item json.RawMessage) string {
	if runes := []rune(string(item)); len(runes) > previewRunes {
		return string(runes[:previewRunes]) + "…"
	}
	return string(item)
}
