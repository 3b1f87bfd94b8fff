package exportfile

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/exportchunk"
	"github.com/palisade/palisade/services/internal/store"
)

// Read calls each with the bytes of a complete file from an offset to an end, at most a chunk at a time. The bytes stay
// valid.
func Read(ctx context.Context, st *store.Store, of *ent.Export, offset, end int64, each func([]byte) error) error {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*ChunkSize))
	if err != nil {
		return err
	}
	defer decoder.Close()
	for offset < end {
		position := offset - offset%ChunkSize
		chunk, err := st.Reader.ExportChunk.Query().
			Where(exportchunk.ExportID(of.ID), exportchunk.Round(of.Round), exportchunk.Position(position)).Only(ctx)
		if err != nil {
			return fmt.Errorf("byte %d of export %d: %w", position, of.ID, err)
		}
		plain, err := decoder.DecodeAll(chunk.Content, nil)
		if err != nil || int64(len(plain)) <= offset-position {
			return fmt.Errorf("byte %d of export %d: the chunk is damaged: %w", position, of.ID, err)
		}
		if err := each(plain[offset-position : min(int64(len(plain)), end-position)]); err != nil {
			return err
		}
		offset = position + int64(len(plain))
	}
	return nil
}
