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
	// maxFrame is above the size of the largest frame: the coverage with all its paths.
	maxFrame = 128 << 20
	// maxWindow bounds the memory for reading the frames.
	maxWindow = 8 << 20
)

// Writer writes frames in their stored form.
type Writer struct {
	zstd *zstd.Encoder
	// Frames is the number of frames written.
	Frames int
}

// NewWriter compresses to w. The output is complete after Close.
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

// Close ends the stream. Another stream may follow in the same output; both are read as one.
func (w *Writer) Close() error { return w.zstd.Close() }

// Read calls yield for each frame in r, in their order. It writes the paths of coverages as findings have them.
func Read(r io.Reader, yield func(*storev1.ScannerFrame) error) error {
	decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer decoder.Close()
	paths := pathResolver{}
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
		if coverage := frame.GetCoverage(); coverage != nil {
			paths.resolve(coverage)
		}
		if err := yield(frame); err != nil {
			return err
		}
	}
}
