# Median regressions by R's quantreg, column by column, timed in here so that R's own start does not count.
#
#   Rscript quantreg.R br|fnb|rqs FOLDER k q p budget
#
# Reads FOLDER/A and FOLDER/B (raw doubles, column by column); stops after p columns or `budget` wall seconds.
# Writes FOLDER/U (raw doubles, q per column done) and FOLDER/clock (CPU and wall seconds since the start, two per column).
options(warn = -1) # "solution may be nonunique", once per column
suppressPackageStartupMessages(library(quantreg))

arguments <- commandArgs(trailingOnly = TRUE)
fits <- list(
  br = function(b) rq.fit.br(A, b, tau = 0.5)$coefficients,
  fnb = function(b) rq.fit.fnb(A, b, tau = 0.5)$coefficients,
  rqs = function(b) rqs.fit(A, as.matrix(b), tau = 0.5)
)
fit <- fits[[arguments[1]]]
folder <- arguments[2]
size <- as.integer(arguments[3:5])
budget <- as.numeric(arguments[6])
read <- function(name, columns) {
  matrix(readBin(file.path(folder, name), "double", size[1] * columns), size[1], columns)
}
A <- read("A", size[2])
B <- read("B", size[3])

U <- matrix(0, size[2], size[3])
clock <- matrix(0, 2, size[3])
began <- proc.time()
for (j in seq_len(size[3])) {
  U[, j] <- fit(B[, j])
  spent <- proc.time() - began
  clock[, j] <- c(spent[["user.self"]] + spent[["sys.self"]], spent[["elapsed"]])
  if (spent[["elapsed"]] > budget) break
}
writeBin(as.vector(U[, seq_len(j)]), file.path(folder, "U"))
writeBin(as.vector(clock[, seq_len(j)]), file.path(folder, "clock"))
