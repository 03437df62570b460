module mooring.dev/reach

go 1.25
