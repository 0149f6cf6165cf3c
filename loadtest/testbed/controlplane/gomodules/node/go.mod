module muster.dev/assets/node

go 1.25
