package scanner

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protodelim"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	// maxFrame is more than the largest frame that is ever written: the coverage, with all its paths.
	maxFrame = 128 << 20
	// maxWindow bounds the memory of whoever reads the frames.
	maxWindow = 8 << 20
)

// Writer writes frames in the form in which they are stored.
type Writer struct {
	zstd *zstd.Encoder
	// Frames is how many were written.
	Frames int
}

// NewWriter compresses to w. What is written is complete after Close.
func NewWriter(w io.Writer) (*Writer, error) {
	encoder, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	return &Writer{zstd: encoder}, nil
}

// Write adds a frame.
func (w *Writer) Write(frame *storev1.ScannerFrame) error {
	w.Frames++
	_, err := protodelim.MarshalTo(w.zstd, frame)
	return err
}

// Close ends the stream. Another stream may follow it in the same place: they are read as one.
func (w *Writer) Close() error { return w.zstd.Close() }

// Read calls yield for each frame that r holds, in the order in which they were written.
func Read(r io.Reader, yield func(*storev1.ScannerFrame) error) error {
	decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer decoder.Close()
	in := bufio.NewReaderSize(decoder, 64<<10)
	for {
		frame := &storev1.ScannerFrame{}
		err := protodelim.UnmarshalOptions{MaxSize: maxFrame}.UnmarshalFrom(in, frame)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the stored results: %w", err)
		}
		if err := yield(frame); err != nil {
			return err
		}
	}
}
