"""Starting workers: threads of this process, processes of this machine, a running scheduler."""
