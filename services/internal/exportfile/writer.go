package exportfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/klauspost/compress/zstd"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/ent/exportchunk"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// ErrLost is the error of a writer whose export was deleted, is complete, or is written by a later attempt of the job.
var ErrLost = errors.New("the export is gone or complete, or another attempt writes it")

// Writer writes the file of an export.
type Writer struct {
	// Rows is the number of findings so far. The caller counts them.
	Rows int64

	store   *store.Store
	export  *ent.Export
	max     int64
	encoder *zstd.Encoder
	sum     hash.Hash
	buffer  []byte
	written int64
}

// Begin starts the file of an export again, from its beginning. What earlier attempts wrote is deleted.
func Begin(ctx context.Context, st *store.Store, exportID int64) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Writer{store: st, max: MaxBytes, encoder: encoder, sum: sha256.New(), buffer: make([]byte, 0, ChunkSize)}
	err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		w.export, err = tx.Export.UpdateOneID(exportID).Where(export.CompletedAtIsNil()).AddRound(1).SetRowCount(0).SetByteCount(0).SetError("").Save(ctx)
		return err
	})
	if ent.IsNotFound(err) {
		return nil, ErrLost
	}
	if err != nil {
		return nil, fmt.Errorf("begin export %d: %w", exportID, err)
	}
	return w, deleteChunks(ctx, st, exportID, exportchunk.RoundLT(w.export.Round))
}

// Export is the row of the export when this attempt began.
func (w *Writer) Export() *ent.Export { return w.export }

// Write adds bytes to the file. A failed writer cannot be used again.
func (w *Writer) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := copy(w.buffer[len(w.buffer):ChunkSize], p)
		w.buffer, p = w.buffer[:len(w.buffer)+n], p[n:]
		if len(w.buffer) == ChunkSize {
			if err := w.flush(ctx, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// Finish completes the file. From now on it can be downloaded.
func (w *Writer) Finish(ctx context.Context) error {
	now := store.Now()
	return w.flush(ctx, func(u *ent.ExportUpdate) {
		u.SetSha256(w.sum.Sum(nil)).SetCompletedAt(now).SetExpiresAt(now + Life.Microseconds())
	})
}

// flush stores the buffer as a chunk, and the progress.
func (w *Writer) flush(ctx context.Context, end func(*ent.ExportUpdate)) error {
	position := w.written
	w.written += int64(len(w.buffer))
	if w.written > w.max {
		return apierr.FailedPrecondition("the export is larger than %d bytes: narrow its filter", w.max)
	}
	_, _ = w.sum.Write(w.buffer) // never fails
	packed := w.encoder.EncodeAll(w.buffer, nil)
	err := w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Export.Update().Where(export.ID(w.export.ID), export.Round(w.export.Round), export.CompletedAtIsNil()).
			SetRowCount(w.Rows).SetByteCount(w.written)
		if end != nil {
			end(update)
		}
		n, err := update.Save(ctx)
		switch {
		case err != nil:
			return err
		case n == 0:
			return ErrLost
		case len(w.buffer) == 0:
			return nil
		}
		return tx.ExportChunk.Create().SetDeploymentID(w.export.DeploymentID).SetExportID(w.export.ID).SetRound(w.export.Round).
			SetPosition(position).SetContent(packed).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("write export %d: %w", w.export.ID, err)
	}
	w.buffer = w.buffer[:0]
	return nil
}
