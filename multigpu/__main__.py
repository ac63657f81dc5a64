from multigpu.cli import main

main()
