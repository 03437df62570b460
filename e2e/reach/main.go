// Reach tells which addresses answer from where it runs.
//
//	reach [-within DURATION] TARGET...
//
// A target is tcp:HOST:PORT, dns:HOST:PORT (a question over UDP) or unix:PATH, with @ as the first character of an abstract
// name. One line of JSON tells the outcome of each, in the order given. The exit code is 0 whatever the outcomes are, and 2
// for a target that is not understood.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"
)

func main() {
	within := flag.Duration("within", 2*time.Second, "how long to wait for each answer")
	flag.Parse()
	targets := make([]target, flag.NArg())
	for i, text := range flag.Args() {
		parsed, err := parse(text)
		if err != nil {
			fmt.Fprintf(os.Stderr, "reach: %v\n", err)
			os.Exit(2)
		}
		targets[i] = parsed
	}
	reports := make([]report, len(targets))
	var asked sync.WaitGroup
	for i, target := range targets {
		asked.Go(func() { reports[i] = target.ask(*within) })
	}
	asked.Wait()
	out := json.NewEncoder(os.Stdout)
	for _, report := range reports {
		if err := out.Encode(report); err != nil {
			fmt.Fprintf(os.Stderr, "reach: %v\n", err)
			os.Exit(1)
		}
	}
}
