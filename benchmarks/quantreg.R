# Quantile regressions by R's quantreg, column by column, timed in here so that R's own start does not count.
#
#   Rscript quantreg.R br|fnb|rqs FOLDER k q p budget quantile
#
# Reads FOLDER/A and FOLDER/B (raw doubles, column by column); stops after p columns or `budget` wall seconds.
# Writes FOLDER/U (raw doubles, q per column done) and FOLDER/clock (CPU and wall seconds since the start, two per column).
# rqs, which is made for many columns at once, gets as many as take about 0.2 seconds; they share that time evenly.
options(warn = -1) # "solution may be nonunique", once per column
suppressPackageStartupMessages(library(quantreg))

arguments <- commandArgs(trailingOnly = TRUE)
method <- arguments[1]
folder <- arguments[2]
size <- as.integer(arguments[3:5])
budget <- as.numeric(arguments[6])
tau <- as.numeric(arguments[7])
fits <- list(
  br = function(b) rq.fit.br(A, b, tau = tau)$coefficients,
  fnb = function(b) rq.fit.fnb(A, b, tau = tau)$coefficients,
  rqs = function(b) t(rqs.fit(A, as.matrix(b), tau = tau))
)
fit <- fits[[method]]
read <- function(name, columns) {
  matrix(readBin(file.path(folder, name), "double", size[1] * columns), size[1], columns)
}
A <- read("A", size[2])
B <- read("B", size[3])

U <- matrix(0, size[2], size[3])
clock <- matrix(0, 2, size[3])
done <- 0
last <- c(0, 0)
began <- proc.time()
while (done < size[3] && last[2] <= budget) {
  together <- if (method == "rqs" && done > 0) max(1, floor(0.2 * done / max(last[2], 0.001))) else 1
  columns <- done + seq_len(min(together, size[3] - done))
  U[, columns] <- fit(B[, columns])
  spent <- proc.time() - began
  now <- c(spent[["user.self"]] + spent[["sys.self"]], spent[["elapsed"]])
  clock[, columns] <- last + outer(now - last, seq_along(columns) / length(columns))
  done <- done + length(columns)
  last <- now
}
writeBin(as.vector(U[, seq_len(done)]), file.path(folder, "U"))
writeBin(as.vector(clock[, seq_len(done)]), file.path(folder, "clock"))
