// SPDX-License-Identifier: Apache-2.0

// schedcheck answers what kube-scheduler would say of pods on nodes, by kube-scheduler's own code: its framework with
// the in-tree plugins in their default configuration, its cache and its snapshot. Nothing of the rules is written anew
// here. Requests come as JSON, one a line, on stdin; each gets one line on stdout, in the same order. Which requests
// there are: requests.go.
//
// tests/scheduler holds the coordinator's own simulation to these answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schedcheck:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer cancel()

	metrics.Register()
	scheduler, err := newScheduler(ctx)
	if err != nil {
		return err
	}

	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			encoded, err := json.Marshal(scheduler.answer(line))
			if err != nil {
				return err
			}
			if _, err := writer.Write(append(encoded, '\n')); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
